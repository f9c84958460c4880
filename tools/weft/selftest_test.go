package main

import (
	"bytes"
	"encoding/xml"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"weft/internal/build"
	"weft/internal/junit"
)

// installed lays a program, a host and a library out as an installation has them.
func installed(t *testing.T, library string) (program string) {
	t.Helper()
	if library == build.Self {
		t.Skip("there is no library to install: the host has it inside, under the race detector")
	}
	weft, h := programs(t)
	dir := t.TempDir()
	for name, file := range map[string]string{"bin/weft": weft, "bin/weft-host": h, "lib/libnccl-net-weft.so": library} {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "bin/weft")
}

// An installation tests itself; a library that spoils data does not pass, and the report says which command shows it.
func TestSelftest(t *testing.T) {
	spoil, err := build.Plugin("tools/host/testdata/spoil.c")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, library string
		failures      int
		want          string
	}{
		{"weft", ours(t), 0, "all is well\n"},
		{"spoilt", spoil, -1, "FAIL  every table carries data"},
	} {
		t.Run(c.name, func(t *testing.T) {
			report := filepath.Join(t.TempDir(), "report.xml")
			cmd := exec.CommandContext(t.Context(), installed(t, c.library), "selftest", "--junit", report, "--timeout", "5m")
			out, err := cmd.CombinedOutput()
			if (err == nil) != (c.failures == 0) || !strings.Contains(string(out), c.want) {
				t.Errorf("%v\n%s", err, out)
			}
			b, err := os.ReadFile(report)
			if err != nil {
				t.Fatal(err)
			}
			var d junit.Document
			if err := xml.NewDecoder(bytes.NewReader(b)).Decode(&d); err != nil || len(d.Suites) != 1 {
				t.Fatalf("%v\n%s", err, b)
			}
			s := d.Suites[0]
			if len(s.Cases) != s.Tests || s.Tests < 9 || (s.Failures > 0) != (c.failures != 0) {
				t.Errorf("%d cases, %d tests, %d failures", len(s.Cases), s.Tests, s.Failures)
			}
			for _, one := range s.Cases {
				if one.Failure != nil && !strings.Contains(one.Failure.Text, "weft ") {
					t.Errorf("%s does not say how to see it: %q", one.Name, one.Failure.Text)
				}
			}
		})
	}
}

// What takes too long is ended, and told as not done.
func TestSelftestEnds(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), installed(t, ours(t)), "selftest", "--timeout", "1ms").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "not done: the 1ms of --timeout are over") {
		t.Errorf("%v\n%s", err, out)
	}
}
