package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weft/internal/build"
	"weft/internal/simverbs"
)

// compile builds a C file of testdata.
func compile(t *testing.T, out, source string, flags ...string) string {
	t.Helper()
	cc := os.Getenv("CC")
	if cc == "" {
		cc = "gcc"
	}
	path := filepath.Join(t.TempDir(), out)
	args := append([]string{"-std=gnu11", "-g", "-Wall", "-I../headers/nccl", "-o", path, filepath.Join("testdata", source)}, append(flags, "-pthread", "-ldl")...)
	if text, err := exec.Command(cc, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", cc, source, err, text)
	}
	return path
}

// library is the path of the library that is shipped; these processes are not built for sanitizers.
func library(t *testing.T) string {
	t.Helper()
	if os.Getenv(build.DistEnv) != "" {
		t.Skip("the library is built for a sanitizer: these processes are not")
	}
	lib, err := build.Library()
	if err != nil {
		t.Fatal(err)
	}
	return lib
}

// lacks is the status of a process that cannot do its case on this machine, and says why.
const lacks = 77

// ok runs a process that says so when all is well.
func ok(t *testing.T, program string, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(os.Environ(), "NCCL_DEBUG=INFO") // it takes every line
	text, err := cmd.CombinedOutput()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() == lacks {
		t.Skipf("this machine has too little: %s", text)
	}
	if err != nil || strings.TrimSpace(string(text)) != "ok" {
		t.Errorf("%v\n%s", err, text)
	}
}

// The library as a guest in processes that a single host cannot show: beside
// two copies of NCCL, with settings made late, and across a fork.
func TestGuest(t *testing.T) {
	lib := library(t)
	process := compile(t, "process", "process.c")
	first, second := compile(t, "first.so", "copy.c", "-shared", "-fPIC"), compile(t, "second.so", "copy.c", "-shared", "-fPIC")
	for _, name := range []string{"copies", "guest", "forked", "early", "during"} {
		t.Run(name, func(t *testing.T) { ok(t, process, name, lib, first, second) })
	}
}

// The library in a process whose handlers of signals would not survive on a goroutine's stack, nor the goroutine.
func TestSignals(t *testing.T) {
	lib := library(t)
	signals := compile(t, "signals", "signals.c")
	for _, name := range []string{"rain", "nobody", "flags", "masks", "pipes"} {
		t.Run(name, func(t *testing.T) { ok(t, signals, name, lib) })
	}
}

// A host polls many connects and accepts, each of them often: polls that hear nothing new must not enter Go.
func TestPollsStayInC(t *testing.T) {
	ok(t, compile(t, "polls", "polls.c", "-rdynamic"), library(t))
}

// The library in a process that has too little of something: it lives, and is told of what.
func TestLimits(t *testing.T) {
	lib := library(t)
	limits := compile(t, "limits", "limits.c")
	for _, name := range []string{"space", "edge", "data", "stacks", "locked", "threads", "keys", "crowd"} {
		t.Run(name, func(t *testing.T) { ok(t, limits, name, lib) })
	}
}

// Calls into libibverbs that take long, of many connections at once, take no thread that was not there at init.
func TestSlowCalls(t *testing.T) {
	lib := library(t)
	dist, err := simverbs.Dist()
	if err != nil {
		t.Fatal(err)
	}
	w := simverbs.World{Name: "slow-calls", Dir: t.TempDir(), Devices: []simverbs.Device{{Name: "sim0", GIDs: []string{"10.1.0.1/24"}}}}
	env, err := w.Env(dist, "", "slow create_qp 10000", "slow modify_qp 10000", "slow create_cq 10000")
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range env {
		name, value, _ := strings.Cut(v, "=")
		t.Setenv(name, value)
	}
	ok(t, compile(t, "limits", "limits.c", "-rdynamic"), "slow", lib)
}

// A thread that cannot be had is waited for as long as docs/limits.md says, though Go asks for it twenty times.
func TestPatience(t *testing.T) {
	ok(t, compile(t, "patience", "patience.c", "../guest/threads.c"))
}
