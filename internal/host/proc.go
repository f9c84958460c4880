package host

import (
	"fmt"
	"strings"
	"time"
)

// Stat is what a process holds.
type Stat struct {
	PID, Threads, FDs int
	RSS               int64         // bytes
	User, System      time.Duration // CPU time
}

// Stat reads the process's resources.
func (h *Host) Stat() (Stat, error) {
	r, err := h.Call("main", "proc.stat", nil)
	return Stat{PID: int(r.Int("pid")), Threads: int(r.Int("threads")), FDs: int(r.Int("fds")), RSS: r.Int("rss"),
		User: time.Duration(r.Int("utime")), System: time.Duration(r.Int("stime"))}, err
}

// Setenv sets a variable with setenv(3), as a host program may before init.
func (h *Host) Setenv(name, value string) error {
	_, err := h.Call("main", "proc.setenv", Args{"name", name, "value", value})
	return err
}

// Rlimit sets a limit: nofile, memlock or as.
func (h *Host) Rlimit(which string, soft, hard uint64) error {
	_, err := h.Call("main", "proc.rlimit", Args{"which", which, "soft", soft, "hard", hard})
	return err
}

// RaiseFiles lets the process open as many files as its hard limit allows, and says how many.
func (h *Host) RaiseFiles() (int64, error) {
	r, err := h.Call("main", "proc.rlimit", Args{"which", "nofile"})
	if err != nil {
		return 0, err
	}
	return r.Int("hard"), h.Rlimit("nofile", uint64(r.Int("hard")), uint64(r.Int("hard")))
}

// ChildResult is how a forked child of the host ended.
type ChildResult struct {
	PID    int
	Exit   int // -1 when a signal ended it
	Signal int // SIGALRM (14) when it hung
	Lines  []Reply
}

// Line is one request of a forked child's script, without thread.
func Line(cmd string, a Args) string {
	var b strings.Builder
	b.WriteString(cmd)
	a.encode(&b)
	return b.String()
}

// Fork forks on a thread of the host; the child carries out lines (see Line) and
// leaves, or stays until Reap when hold is set. An alarm ends a child that hangs.
func (h *Host) Fork(thread string, alarm time.Duration, hold bool, lines ...string) (*ChildResult, error) {
	r, err := h.Call(thread, "proc.fork", Args{"do", strings.Join(lines, "\n"), "alarm", alarm, "hold", hold})
	if err != nil {
		return nil, err
	}
	c := &ChildResult{PID: int(r.Int("child")), Exit: int(r.Int("exit")), Signal: int(r.Int("signal"))}
	for _, l := range strings.Split(r.Str("out"), "\n") {
		if f := strings.Fields(l); len(f) >= 2 {
			c.Lines = append(c.Lines, Reply{Values: pairs(f[2:])})
		}
	}
	return c, nil
}

// Reap ends (with SIGKILL when kill is set) and collects a held child.
func (h *Host) Reap(c *ChildResult, kill bool) error {
	r, err := h.Call("main", "proc.reap", Args{"child", c.PID, "kill", kill})
	c.Exit, c.Signal = int(r.Int("exit")), int(r.Int("signal"))
	return err
}

// Exit ends the process: how is exit (with destructors), _exit or return (from
// main). It returns the exit status, or an error when a signal ended it.
func (h *Host) Exit(how string, code int) error {
	h.Go("main", "exit", Args{"how", how, "code", code})
	select {
	case <-h.dead:
	case <-time.After(h.opts.Deadline):
		h.Kill()
		return fmt.Errorf("%s: %s did not end the process within %v", h.opts.Name, how, h.opts.Deadline)
	}
	if d, ok := h.death.(*DeathError); ok && (d.Signal != 0 || d.Exit != code) {
		return d
	}
	return nil
}
