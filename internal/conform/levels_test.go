package conform

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"weft/internal/build"
)

// TestLevelsInAHost has hosts with and without a function of NCCLX load the library: what it says is numbered as the host
// numbers it, whatever else is in the process.
func TestLevelsInAHost(t *testing.T) {
	if os.Getenv(build.DistEnv) != "" {
		t.Skipf("%s names a library that is built otherwise than these hosts", build.DistEnv)
	}
	library, err := build.Library()
	if err != nil {
		t.Fatal(err)
	}
	root, err := build.Root()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	made := func(name string, flags ...string) string {
		out := filepath.Join(dir, name)
		args := append([]string{"-std=gnu11", "-Wall", "-Wextra", "-Wno-pedantic", "-I" + filepath.Join(root, "headers"), "-o", out, "testdata/levels.c"}, flags...)
		if text, err := exec.Command("gcc", append(args, "-ldl")...).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		return out
	}
	mark := made("libmark.so", "-shared", "-fPIC", "-DMARK", "-DONLY_MARK")
	program := made("program", "-DPROGRAM")
	for _, c := range []struct {
		name       string
		command    []string
		env        string
		warn, info string
	}{
		{"NCCL in a program", []string{program, library}, "", "2", "3"},
		{"NCCLX in a program", []string{made("x", "-DPROGRAM", "-DMARK", "-rdynamic"), library}, "", "3", "4"},
		{"NCCLX in a program that hides it", []string{made("hidden", "-DPROGRAM", "-DMARK"), library}, "", "2", "3"},
		{"the same, and told", []string{made("told", "-DPROGRAM", "-DMARK"), library}, "WEFT_LOG_LEVELS=ncclx", "3", "4"},
		{"NCCL as a library", []string{program, library, made("libnccl.so", "-shared", "-fPIC")}, "", "2", "3"},
		{"NCCLX as a library", []string{program, library, made("libncclx.so", "-shared", "-fPIC", "-DMARK")}, "", "3", "4"},
		{"NCCL beside NCCLX", []string{program, library, made("libboth.so", "-shared", "-fPIC", "-Wl,--no-as-needed", mark, "-Wl,-rpath,"+dir)}, "", "2", "3"},
		{"RCCL of ROCm 7.1", []string{program, library, made("librccl.so.1.0.70100", "-shared", "-fPIC", "-DRCCL")}, "", "2", "3"},
		{"RCCL of ROCm 7.2, by a link", []string{program, library, linked(t, made("librccl.so.1.0.70200", "-shared", "-fPIC", "-DRCCL"), "librccl.so.1")}, "", "3", "4"},
		{"RCCL from 2.28.3 on", []string{program, library, made("librccl.so", "-shared", "-fPIC", "-DRCCL", "-DDUMP")}, "", "3", "4"},
		{"NCCL that can dump", []string{program, library, made("libdump.so", "-shared", "-fPIC", "-DDUMP")}, "", "2", "3"},
		{"NCCLX, and told that it is none", []string{program, library, made("libnot.so", "-shared", "-fPIC", "-DMARK")}, "WEFT_LOG_LEVELS=nccl", "2", "3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, c.command[0], c.command[1:]...)
			cmd.Env = append(os.Environ(), "NCCL_SOCKET_IFNAME=lo", "NCCL_DEBUG=INFO", c.env)
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			for level, text := range map[string]string{c.warn: "devices: ndev is NULL", c.info: "first used through table v8"} {
				if !regexp.MustCompile("(?m)^" + level + " .*" + text).Match(out) {
					t.Errorf("%q is not said at level %s:\n%s", text, level, out)
				}
			}
		})
	}
}

// linked is another name for a file, beside it.
func linked(t *testing.T, file, name string) string {
	t.Helper()
	path := filepath.Join(filepath.Dir(file), name)
	if err := os.Symlink(filepath.Base(file), path); err != nil {
		t.Fatal(err)
	}
	return path
}
