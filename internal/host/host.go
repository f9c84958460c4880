package host

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Options say how a host process is started.
type Options struct {
	Bin      string        // the weft-host program
	Name     string        // for messages; default "host"
	Env      []string      // added to (and overriding) this process's environment
	Clean    bool          // start from PATH, HOME, TMPDIR and LD_LIBRARY_PATH only
	Dir      string        // working directory
	Deadline time.Duration // of a call, and of the start; default 60 s
	Log      func(LogLine) // every line that the plugin logs; called in order, must not block
	Stdout   io.Writer     // default: dropped
	Stderr   io.Writer     // default: kept (last 16 KiB) for DeathError
}

// LogLine is one line that the plugin gave to NCCL's logger, or a signal event.
type LogLine struct {
	Level  int // 1 VERSION, 2 WARN, 3 INFO, 4 ABORT, 5 TRACE, 6 ATTN
	Flags  uint64
	Func   string
	Line   int
	Thread string
	Text   string
}

// Host is one running host process.
type Host struct {
	opts   Options
	cmd    *exec.Cmd
	conn   net.Conn
	flight *os.File
	PID    int

	writeMu sync.Mutex // protects writes to conn

	mu      sync.Mutex // protects what follows
	next    uint64
	waiting map[uint64]*waiter
	logs    []LogLine
	signals map[int]int
	killed  bool   // this client sent SIGKILL
	expired string // what ran past its deadline

	death   error // written before dead is closed
	dead    chan struct{}
	drained chan struct{} // the reader has ended
	stderr  tail
}

type waiter struct {
	thread, cmd string
	logMark     int
	ch          chan *Reply
	err         error
}

// Start runs a host process and waits until it is ready.
func Start(o Options) (*Host, error) {
	if o.Name == "" {
		o.Name = "host"
	}
	if o.Deadline == 0 {
		o.Deadline = 60 * time.Second
	}
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("start %s: socketpair: %w", o.Name, err)
	}
	ours, theirs := os.NewFile(uintptr(fds[0]), "host"), os.NewFile(uintptr(fds[1]), "host")
	defer theirs.Close()
	conn, err := net.FileConn(ours)
	ours.Close()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", o.Name, err)
	}
	flight, err := newFlight()
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("start %s: %w", o.Name, err)
	}
	h := &Host{opts: o, conn: conn, flight: flight, waiting: map[uint64]*waiter{}, signals: map[int]int{}, dead: make(chan struct{}), drained: make(chan struct{})}
	h.cmd = exec.Command(o.Bin, "--fd", "3", "--flight", "4")
	h.cmd.ExtraFiles = []*os.File{theirs, flight}
	h.cmd.Env = environment(o)
	h.cmd.Dir = o.Dir
	h.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // ^C is the client's; the host leaves when the socket ends
	h.cmd.WaitDelay = time.Second                           // a forked child may hold the pipes
	h.cmd.Stdout, h.cmd.Stderr = o.Stdout, o.Stderr
	if o.Stderr == nil {
		h.cmd.Stderr = &h.stderr
	}
	ready := make(chan struct{})
	if err := h.cmd.Start(); err != nil {
		conn.Close()
		flight.Close()
		return nil, fmt.Errorf("start %s: %w (build it with make, or name it with --host)", o.Name, err)
	}
	theirs.Close()
	h.PID = h.cmd.Process.Pid
	go h.read(ready)
	go h.bury()
	select {
	case <-ready:
		return h, h.loadFirst()
	case <-h.dead:
		return nil, h.Err()
	case <-time.After(o.Deadline):
		h.expire(fmt.Sprintf("not ready within %v of its start", o.Deadline))
		<-h.dead
		return nil, h.Err()
	}
}

// loadFirst opens the library that WEFT_HOST_FIRST names, so that a whole test
// suite can run beside a second Go library in the same process.
func (h *Host) loadFirst() error {
	if first := os.Getenv("WEFT_HOST_FIRST"); first != "" {
		if _, err := h.Load(first); err != nil {
			h.Kill()
			return fmt.Errorf("WEFT_HOST_FIRST: %w", err)
		}
	}
	return nil
}

func environment(o Options) []string {
	var env []string
	if o.Clean {
		for _, k := range []string{"PATH", "HOME", "TMPDIR", "LD_LIBRARY_PATH"} {
			if v, ok := os.LookupEnv(k); ok {
				env = append(env, k+"="+v)
			}
		}
	} else {
		env = os.Environ()
	}
	if level := strings.ToUpper(os.Getenv("NCCL_DEBUG")); o.Clean || level != "INFO" && level != "TRACE" {
		env = append(env, "NCCL_DEBUG=INFO") // a host takes every line, and plugins may look at this
	}
	return append(env, o.Env...)
}

func (h *Host) read(ready chan struct{}) {
	r := bufio.NewReaderSize(h.conn, 1<<16)
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			break
		}
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		if f[0] == "-" {
			h.event(f[1], pairs(f[2:]), &ready)
			continue
		}
		h.answer(f)
	}
	close(h.drained)
}

func (h *Host) event(kind string, v map[string]string, ready *chan struct{}) {
	r := Reply{Values: v}
	switch kind {
	case "ready":
		if *ready != nil {
			close(*ready)
			*ready = nil
		}
	case "signal":
		h.mu.Lock()
		h.signals[int(r.Int("sig"))]++
		h.mu.Unlock()
	case "log":
		l := LogLine{Level: int(r.Int("level")), Flags: uint64(r.Ptr("flags")), Func: v["func"], Line: int(r.Int("line")), Thread: v["thread"], Text: v["text"]}
		h.mu.Lock()
		h.logs = append(h.logs, l)
		h.mu.Unlock()
		if h.opts.Log != nil {
			h.opts.Log(l)
		}
	}
}

func (h *Host) answer(f []string) {
	id, _ := strconv.ParseUint(f[0], 10, 64)
	h.mu.Lock()
	defer h.mu.Unlock()
	w := h.waiting[id]
	if w == nil {
		return
	}
	delete(h.waiting, id)
	v := pairs(f[2:])
	r := &Reply{Call: w.cmd, Values: v}
	r.Took = time.Duration(r.Int("ns"))
	if f[1] != "ok" {
		w.err = &CommandError{Call: w.cmd, Word: v["code"], Msg: v["msg"]}
	} else if rc := r.RC(); rc != Success {
		w.err = &ResultError{Call: w.cmd, Slot: v["slot"], Code: rc, Log: warnings(h.logs[w.logMark:])}
	}
	w.ch <- r
}

func warnings(l []LogLine) []LogLine {
	var out []LogLine
	for _, l := range l {
		if l.Level == 2 {
			out = append(out, l)
		}
	}
	return out
}

func pairs(f []string) map[string]string {
	m := make(map[string]string, len(f))
	for _, p := range f {
		k, v, _ := strings.Cut(p, "=")
		m[k] = unescape(v)
	}
	return m
}

// Pending is a command under way.
type Pending struct {
	h        *Host
	w        *waiter
	id       uint64
	deadline time.Time
	limit    time.Duration
}

// Go sends a command to a thread of the host and does not wait.
func (h *Host) Go(thread, cmd string, a Args) *Pending {
	return h.GoIn(h.opts.Deadline, thread, cmd, a)
}

// GoIn is Go with a deadline of its own.
func (h *Host) GoIn(limit time.Duration, thread, cmd string, a Args) *Pending {
	w := &waiter{thread: thread, cmd: cmd, ch: make(chan *Reply, 1)}
	h.mu.Lock()
	h.next++
	id := h.next
	h.waiting[id] = w
	w.logMark = len(h.logs)
	h.mu.Unlock()
	var b strings.Builder
	fmt.Fprintf(&b, "%d %s %s", id, thread, cmd)
	a.encode(&b)
	b.WriteByte('\n')
	h.writeMu.Lock()
	h.conn.SetWriteDeadline(time.Now().Add(limit))
	_, _ = io.WriteString(h.conn, b.String()) // a broken socket shows as death below
	h.writeMu.Unlock()
	return &Pending{h: h, w: w, id: id, deadline: time.Now().Add(limit), limit: limit}
}

// Wait returns the command's reply. A command past its deadline kills the host.
func (p *Pending) Wait() (*Reply, error) {
	t := time.NewTimer(time.Until(p.deadline))
	defer t.Stop()
	select {
	case r := <-p.w.ch:
		return r, p.w.err
	case <-p.h.dead:
		select {
		case r := <-p.w.ch:
			return r, p.w.err
		default:
		}
		return &Reply{Call: p.w.cmd}, p.h.Err()
	case <-t.C:
	}
	p.h.expire(fmt.Sprintf("%s on thread %s did not answer within %v", p.w.cmd, p.w.thread, p.limit))
	<-p.h.dead
	return &Reply{Call: p.w.cmd}, p.h.Err()
}

// Call sends a command to a thread of the host and waits for its reply.
// The reply is never nil, so that outputs can be read beside an error.
func (h *Host) Call(thread, cmd string, a Args) (*Reply, error) { return h.Go(thread, cmd, a).Wait() }

// CallIn is Call with a deadline of its own.
func (h *Host) CallIn(limit time.Duration, thread, cmd string, a Args) (*Reply, error) {
	return h.GoIn(limit, thread, cmd, a).Wait()
}

// Logs are all lines that the plugin has logged so far.
func (h *Host) Logs() []LogLine {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]LogLine(nil), h.logs...)
}

// Signals counts a signal's events (see sig.install).
func (h *Host) Signals(sig int) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.signals[sig]
}

// Err is nil while the process lives, then its *DeathError.
func (h *Host) Err() error {
	select {
	case <-h.dead:
		return h.death
	default:
		return nil
	}
}

// leaving is for a process under a sanitizer on a machine with little time for it.
const leaving = time.Minute

// Close lets the process leave and waits for it; it never fails on a dead one.
// A process that was killed by a signal, or that had to be killed, is an error.
func (h *Host) Close() error {
	h.conn.Close()
	select {
	case <-h.dead:
	case <-time.After(leaving):
		h.Kill()
		return fmt.Errorf("%s: did not leave within %v of the end of its commands", h.opts.Name, leaving)
	}
	var d *DeathError
	if errors.As(h.death, &d) && d.Signal != 0 && !d.Expected {
		return d
	}
	return nil
}

// Signal sends a signal to the process.
func (h *Host) Signal(sig unix.Signal) error {
	if sig == unix.SIGKILL {
		h.mu.Lock()
		h.killed = true
		h.mu.Unlock()
	}
	return h.cmd.Process.Signal(sig)
}

// Kill ends the process with SIGKILL and waits for its end.
func (h *Host) Kill() {
	_ = h.Signal(unix.SIGKILL)
	<-h.dead
}
