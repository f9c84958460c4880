package task

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weft/internal/report"
)

// fdSize is how many descriptors the kernel's table of this process has room for.
func fdSize(t *testing.T) (n int) {
	t.Helper()
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if _, err := fmt.Sscanf(line, "FDSize: %d", &n); err == nil {
			return n
		}
	}
	t.Fatal("/proc/self/status has no FDSize")
	return 0
}

// settled waits until table does not grow any more.
func settled(t *testing.T, table *FileTable) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); table.growing.Load(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the table grows for 30 s")
		}
	}
}

// A descriptor in the upper half of the table has it grow, as far as the limit of open files allows.
func TestFileTable(t *testing.T) {
	var was unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	const most = 8192
	if was.Max < most {
		t.Skipf("the hard limit of open files is only %d", was.Max)
	}
	defer unix.Setrlimit(unix.RLIMIT_NOFILE, &was)
	table := new(FileTable)
	for _, c := range []struct {
		what  string
		limit uint64
		fd    int
		room  int   // that the table has then, at least
		next  int64 // the descriptor that asks for more
	}{
		{"the first connection", most, 5, 1024, 512},
		{"one in the lower half", most, 511, 1024, 512},
		{"one in the upper half", most, 512, 4 * 513, 2 * 513},
		{"one near the limit", 4000, 1030, 4000, 4000},
		{"the last within the limit", 4000, 3999, 4000, 4000},
		{"one when the limit was raised", most, 4000, most, most},
	} {
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: c.limit, Max: was.Max}); err != nil {
			t.Fatal(err)
		}
		table.Holds(c.fd, report.Discard{})
		settled(t, table)
		if has := fdSize(t); has < c.room {
			t.Errorf("%s: room for %d descriptors, not %d", c.what, has, c.room)
		}
		if next := table.next.Load(); next != c.next {
			t.Errorf("%s: descriptor %d asks for more, not %d", c.what, next, c.next)
		}
	}
}
