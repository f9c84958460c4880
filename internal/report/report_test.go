package report

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
)

func TestErrorIsOneLine(t *testing.T) {
	for _, c := range []struct {
		err  *Error
		want string
	}{
		{&Error{Op: "devices"}, "devices: internal error"},
		{Errorf(Network, "connect", "tried %d addresses", 3).On("eth0").With("h2<10.0.0.2:4>").Try("open port %d", 4),
			"connect on eth0 with h2<10.0.0.2:4>: tried 3 addresses; open port 4"},
		{Errorf(Host, "listen", "no file").Try("raise it").See("WEFT-071 WEFT-150"), "listen: no file; raise it [WEFT-071 WEFT-150]"},
		{Errorf(Peer, "accept", "a\nb\rc"), "accept: a b c"},
	} {
		if got := c.err.Error(); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

func TestCauseOf(t *testing.T) {
	inner := Errorf(Host, "socket", "limit: %w", io.EOF)
	for _, c := range []struct {
		err  error
		want Cause
	}{
		{io.EOF, Internal},
		{inner, Host},
		{fmt.Errorf("more: %w", inner), Host},
		{&Error{Op: "connect", Cause: Peer, Err: inner}, Peer},
	} {
		if got := CauseOf(c.err); got != c.want {
			t.Errorf("CauseOf(%v) = %v, want %v", c.err, got, c.want)
		}
	}
	if !errors.Is(inner, io.EOF) {
		t.Error("Unwrap does not reach the wrapped error")
	}
}

func TestSaySpeaksOncePerError(t *testing.T) {
	r := new(Recorder)
	e := Errorf(Peer, "test", "gone")
	Say(r, e)
	Say(r, fmt.Errorf("again: %w", e))
	Say(r, nil)
	Say(r, io.EOF)
	if got := r.Lines(); len(got) != 2 || got[0] != "WARN test: gone" || got[1] != "WARN EOF" {
		t.Errorf("lines %q", got)
	}
	r.Info(Env, "x=%d", 1)
	if r.Count("INFO ENV", "x=1") != 1 || r.Count("WARN") != 2 || r.Count("WARN", "gone") != 1 {
		t.Errorf("Count: %q", r.Lines())
	}
}

func TestALineHoldsAFew(t *testing.T) {
	all := strings.Split("abcdefgh", "")
	for most, want := range map[int]string{1: "a, and 7 more", 7: "a, b, c, d, e, f, g, and 1 more", 8: "a, b, c, d, e, f, g, h", 9: "a, b, c, d, e, f, g, h"} {
		if got := Few(all, most, ", "); got != want || strings.Join(all, "") != "abcdefgh" {
			t.Errorf("%d: %q of %v", most, got, all)
		}
	}
}
