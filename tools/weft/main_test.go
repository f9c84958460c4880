package main

import (
	"bytes"
	"strings"
	"testing"

	"weft/internal/build"
)

// programs are weft and weft-host, built.
func programs(t *testing.T) (weft, host string) {
	t.Helper()
	weft, err := build.Command()
	if err != nil {
		t.Fatal(err)
	}
	if host, err = build.Host(); err != nil {
		t.Fatal(err)
	}
	return weft, host
}

func TestVersion(t *testing.T) {
	for _, arg := range []string{"version", "--version", "-v"} {
		var out, errOut bytes.Buffer
		if status := execute(t.Context(), []string{arg}, &out, &errOut); status != 0 || !strings.HasPrefix(out.String(), "weft ") || errOut.Len() > 0 {
			t.Errorf("%s: status %d, %q, %q", arg, status, out.String(), errOut.String())
		}
	}
}

// What NCCL_DEBUG asks for is printed, and nothing else.
func TestLogLevel(t *testing.T) {
	for _, c := range []struct {
		debug   string
		verbose bool
		want    int
	}{{"", false, 2}, {"", true, 3}, {"info", false, 3}, {"TRACE", false, 5}, {"VERSION", false, 1}, {"WARN", true, 3}, {"ATTN", false, 2}, {"attn", true, 3}, {"TRACE", true, 5}, {"NONE", false, 0}} {
		if level, err := logLevel(c.debug, c.verbose); err != nil || level != c.want {
			t.Errorf("NCCL_DEBUG=%s, -v %t: level %d (%v), want %d", c.debug, c.verbose, level, err, c.want)
		}
	}
	if _, err := logLevel("LOUD", false); err == nil {
		t.Error("NCCL_DEBUG=LOUD is taken")
	}
}
