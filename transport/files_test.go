package transport

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"weft/internal/report"
	"weft/transport/wire"
)

// fewFiles lowers the soft limit to a few above what is open.
func fewFiles(t *testing.T, spare int) {
	t.Helper()
	var lim unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &lim); err != nil {
		t.Fatal(err)
	}
	low := lim
	if low.Cur = uint64(openFDs(t) + spare); low.Cur >= lim.Max {
		t.Skipf("the hard limit of open files is only %d", lim.Max)
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &low); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Setrlimit(unix.RLIMIT_NOFILE, &lim) })
}

func TestLimitOfFilesIsRaisedWhenNeeded(t *testing.T) {
	a, b := start(t, nil), start(t, nil)
	s, r := pair(t, a, b)
	fewFiles(t, 20)
	for range 20 {
		pair(t, a, b)
	}
	move(t, s, r, 100)
	if a.log.Count("INFO INIT raised the limit of open files")+b.log.Count("INFO INIT raised the limit of open files") == 0 {
		t.Errorf("logs: %q %q", a.log.Lines(), b.log.Lines())
	}
}

// childStarves connects to itself until its hard limit is hit and prints the
// error; what it had goes on.
func childStarves(x *Context, _ *bufio.Reader) error {
	os.Stderr = os.Stdout // its warnings are part of what the test reads
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 48, Max: 48}); err != nil {
		return err
	}
	h := make([]byte, wire.HandleMax)
	l, err := x.Listen(0, h)
	if err != nil {
		return err
	}
	for range 100 {
		_, err := (&process{ctx: x}).connect(h)
		if err != nil {
			fmt.Println(report.CauseOf(err), err)
			break
		}
	}
	for { // what came about before is whole
		c, err := l.Accept()
		if err != nil { // the connection that met the limit on this side
			fmt.Println(report.CauseOf(err), err)
			continue
		}
		if c == nil {
			break
		}
		c.Close()
	}
	return x.Close()
}

// TestNoFileLeftSaysSo: whichever side of the process met the limit first, a
// line names it and the remedy, and the process goes on.
func TestNoFileLeftSaysSo(t *testing.T) {
	p := spawn(t, "starve", []string{"WEFT_TIMEOUT=2", "WEFT_CONNECT_TIMEOUT=3"})
	said, err := io.ReadAll(p.out)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"no file descriptor left, the limit is 48", "ulimit -n"} {
		if !strings.Contains(string(said), part) {
			t.Errorf("%q does not say %q", said, part)
		}
	}
	if err := p.Wait(); err != nil {
		t.Error(err)
	}
}
