package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"weft/internal/lab/frame"
)

// Node is one machine.
type Node struct {
	Number int

	lab      *Lab
	process  *process
	listener *net.UnixListener
	console  *os.File
	boot     frame.Hello
	network  float64

	conn net.Conn
	out  *frame.Writer
	jobs struct {
		sync.Mutex // protects the rest
		last       int
		running    map[int]*job
		gone       error // why there will be no answers any more
	}
}

// job is a program that runs on a node.
type job struct {
	stdout, stderr io.Writer
	done           chan struct{}
	status         frame.Status
	err            error
}

// ErrGone is the error of a program whose machine went away under it.
var ErrGone = errors.New("the machine is gone")

// awaitReady takes the machine's call, sets the machine up, and leaves a goroutine that reads what it says.
func (n *Node) awaitReady(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { n.listener.SetDeadline(time.Unix(1, 0)) })
	conn, err := n.accept()
	stop()
	n.listener.Close()
	if err != nil {
		return n.because(ctx, err)
	}
	n.conn, n.out = conn, frame.NewWriter(conn)
	stop = context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	in := frame.NewReader(conn)
	for {
		var up frame.Up
		if err := in.Read(&up); err != nil {
			return n.because(ctx, err)
		}
		switch {
		case up.Hello != nil:
			n.boot = *up.Hello
			if err := n.out.Write(frame.Down{Setup: n.lab.config.setup(n.Number, n.lab.Cables, n.lab.config.mounts())}); err != nil {
				return n.because(ctx, err)
			}
		case up.Failed != "":
			return errors.New(up.Failed)
		case up.Ready != nil:
			n.network = up.Ready.Network
			n.jobs.running = map[int]*job{}
			go n.read(in)
			return nil
		}
	}
}

// accept waits for QEMU, and no longer when that has ended.
func (n *Node) accept() (net.Conn, error) {
	ended := make(chan struct{})
	defer close(ended)
	go func() {
		select {
		case <-n.process.done:
			n.listener.SetDeadline(time.Unix(1, 0))
		case <-ended:
		}
	}()
	return n.listener.Accept()
}

// because explains a broken conversation: the machine ended, or the time did.
func (n *Node) because(ctx context.Context, err error) error {
	select {
	case <-n.process.done:
		return fmt.Errorf("QEMU ended (%v)", n.process.err)
	case <-time.After(50 * time.Millisecond): // its end may be on its way
	}
	select {
	case <-n.process.done:
		return fmt.Errorf("QEMU ended (%v)", n.process.err)
	default:
	}
	if ctx.Err() != nil {
		return fmt.Errorf("%w after %v", ctx.Err(), n.lab.config.Boot)
	}
	return err
}

// lastWords is the end of the console and of QEMU's messages.
func (n *Node) lastWords() string {
	var out strings.Builder
	for _, f := range []string{qemuLog(n.Number), consoleFile(n.Number)} {
		text, err := os.ReadFile(n.lab.path(f))
		if err != nil {
			continue
		}
		lines := strings.Split(strings.TrimSpace(string(text)), "\n")
		if f == qemuLog(n.Number) {
			lines = lines[1:] // the command line
		}
		for _, l := range lines[max(0, len(lines)-8):] {
			if l = strings.TrimSpace(l); l != "" {
				fmt.Fprintf(&out, "\n  %s", l)
			}
		}
	}
	return out.String()
}

// read hands out what the machine says until the connection ends.
func (n *Node) read(in *frame.Reader) {
	for {
		var up frame.Up
		err := in.Read(&up)
		n.jobs.Lock()
		if err != nil {
			n.jobs.gone = ErrGone
			for id, j := range n.jobs.running {
				j.err = ErrGone
				close(j.done)
				delete(n.jobs.running, id)
			}
			n.jobs.Unlock()
			return
		}
		j := n.jobs.running[up.ID]
		if j != nil && up.Exit != nil {
			delete(n.jobs.running, up.ID)
		}
		n.jobs.Unlock()
		switch {
		case j == nil:
		case up.Exit != nil:
			j.status = *up.Exit
			close(j.done)
		case up.Stream == 1:
			j.stdout.Write(up.Data)
		case up.Stream == 2:
			j.stderr.Write(up.Data)
		}
	}
}

// Command is a program to run on a node.
type Command struct {
	Args           []string
	Env            []string // on top of the caller's environment and the node's
	Dir            string   // the caller's folder when empty
	Stdout, Stderr io.Writer
}

// Run runs a program and returns its status, as a shell has it. When ctx ends, the program is killed. An error means that
// it did not run to its end.
func (n *Node) Run(ctx context.Context, c Command) (int, error) {
	j := &job{stdout: c.Stdout, stderr: c.Stderr, done: make(chan struct{})}
	for _, w := range []*io.Writer{&j.stdout, &j.stderr} {
		if *w == nil {
			*w = io.Discard
		}
	}
	if c.Dir == "" {
		dir, err := os.Getwd()
		if err != nil {
			return 0, err
		}
		c.Dir = dir
	}
	n.jobs.Lock()
	if n.jobs.gone != nil {
		n.jobs.Unlock()
		return 0, n.jobs.gone
	}
	n.jobs.last++
	id := n.jobs.last
	n.jobs.running[id] = j
	n.jobs.Unlock()
	if err := n.out.Write(frame.Down{ID: id, Run: &frame.Run{Args: c.Args, Env: n.lab.environ(n.Number, c.Env), Dir: c.Dir}}); err != nil {
		n.jobs.Lock()
		delete(n.jobs.running, id)
		n.jobs.Unlock()
		return 0, fmt.Errorf("%w (%v)", ErrGone, err)
	}
	select {
	case <-j.done:
	case <-ctx.Done():
		n.out.Write(frame.Down{ID: id, Signal: int(syscall.SIGKILL)})
		select {
		case <-j.done:
		case <-time.After(5 * time.Second):
		}
		return 0, context.Cause(ctx)
	}
	if j.err != nil {
		return 0, j.err
	}
	if j.status.Error != "" && (j.status.Code == 126 || j.status.Code == 127) {
		fmt.Fprintf(j.stderr, "%s\n", j.status.Error)
	}
	return j.status.Code, nil
}

// environ is the caller's environment, without what tells ranks where they are, then the node's, then more.
func (l *Lab) environ(node int, more []string) []string {
	var env []string
	for _, v := range os.Environ() {
		switch key, _, _ := strings.Cut(v, "="); {
		case key == "MASTER_ADDR" || key == "MASTER_PORT" || key == "LOCAL_RANK" || strings.HasPrefix(key, "LAB_"):
		default:
			env = append(env, v)
		}
	}
	env = append(env, l.config.environ(node, l.Cables)...)
	return append(env, more...)
}

// Kill takes the machine's power away.
func (n *Node) Kill() {
	n.process.kill()
	n.listener.Close()
	if n.conn != nil {
		n.conn.Close()
	}
	if n.console != nil {
		n.console.Close()
	}
}
