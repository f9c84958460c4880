package host

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// DeathError says how a host process ended and what its threads were doing.
type DeathError struct {
	Name     string
	Signal   syscall.Signal // 0 when it exited
	Exit     int
	Expected bool          // this client sent SIGKILL
	Deadline string        // what ran past its deadline, if that is why
	CPU      time.Duration // that the process used: little where it waited, or where others had the cores
	Inside   []string      // plugin calls that had not returned: "thread: slot"
	Last     []string      // the last plugin call of every other thread
	Pending  []string      // commands without a reply: "thread: command"
	Stderr   string
}

func (e *DeathError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: ", e.Name)
	switch {
	case e.Deadline != "":
		fmt.Fprintf(&b, "%s; killed after %v of CPU time", e.Deadline, e.CPU.Round(time.Millisecond))
	case e.Expected:
		b.WriteString("killed by this program")
	case e.Signal == unix.SIGKILL:
		b.WriteString("ended by SIGKILL, which this program did not send: the kernel's OOM killer (dmesg), the memory limit of a container or job, or a user did")
	case e.Signal != 0:
		fmt.Fprintf(&b, "ended by %s (%v)", unix.SignalName(e.Signal), e.Signal)
	default:
		fmt.Fprintf(&b, "exited with status %d", e.Exit)
	}
	for _, p := range []struct {
		head string
		list []string
	}{{"inside", e.Inside}, {"last calls", e.Last}, {"commands open", e.Pending}} {
		if len(p.list) > 0 {
			fmt.Fprintf(&b, "; %s: %s", p.head, strings.Join(p.list, ", "))
		}
	}
	if e.Stderr != "" {
		fmt.Fprintf(&b, "; stderr:\n%s", e.Stderr)
	}
	return b.String()
}

// The flight page: 64 records of 64 bytes that the host writes around every
// plugin call, in a memfd that outlives it.
const (
	flightSize   = 4096
	flightRecord = 64
)

func newFlight() (*os.File, error) {
	fd, err := unix.MemfdCreate("weft-flight", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("memfd_create: %w", err)
	}
	f := os.NewFile(uintptr(fd), "flight")
	if err := f.Truncate(flightSize); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func readFlight(f *os.File) (inside, last []string) {
	page := make([]byte, flightSize)
	if _, err := f.ReadAt(page, 0); err != nil {
		return nil, nil
	}
	for off := 0; off < flightSize; off += flightRecord {
		rec := page[off : off+flightRecord]
		name, slot := cstring(rec[:24]), cstring(rec[24:48])
		if name == "" || slot == "" {
			continue
		}
		entry := fmt.Sprintf("%s: %s (call %d)", name, slot, binary.LittleEndian.Uint64(rec[48:]))
		if binary.LittleEndian.Uint32(rec[56:]) != 0 {
			inside = append(inside, entry)
		} else {
			last = append(last, entry)
		}
	}
	return inside, last
}

func cstring(b []byte) string {
	if i := bytes.IndexByte(b, 0); i >= 0 {
		b = b[:i]
	}
	return string(b)
}

// bury collects the process and wakes everybody who waits for it.
func (h *Host) bury() {
	_ = h.cmd.Wait()                                               // the state says it all
	h.conn.SetReadDeadline(time.Now().Add(500 * time.Millisecond)) // replies sent before its end still count
	<-h.drained
	h.conn.Close()
	d := &DeathError{Name: h.opts.Name, CPU: h.cmd.ProcessState.UserTime() + h.cmd.ProcessState.SystemTime()}
	if ws, ok := h.cmd.ProcessState.Sys().(syscall.WaitStatus); ok {
		if ws.Signaled() {
			d.Signal = ws.Signal()
		} else {
			d.Exit = ws.ExitStatus()
		}
	}
	d.Inside, d.Last = readFlight(h.flight)
	h.flight.Close()
	h.mu.Lock()
	for _, w := range h.waiting {
		d.Pending = append(d.Pending, w.thread+": "+w.cmd)
	}
	d.Expected = h.killed
	d.Deadline = h.expired
	h.death = d
	h.mu.Unlock()
	d.Stderr = strings.TrimSpace(h.stderr.String())
	close(h.dead)
}

// expire kills the process; what says which deadline has passed.
func (h *Host) expire(what string) {
	h.mu.Lock()
	if h.expired == "" {
		h.expired = what
	}
	h.mu.Unlock()
	_ = h.cmd.Process.Signal(unix.SIGKILL)
}

// tail keeps the end of what the process wrote to stderr.
type tail struct {
	mu sync.Mutex // protects b
	b  []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, p...)
	if n := len(t.b) - 16<<10; n > 0 {
		t.b = t.b[n:]
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.b)
}
