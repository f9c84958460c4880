package guest

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"weft/internal/lab/frame"
)

// server serves the owner of the machine until the port closes or it is told to power off.
type server struct {
	out *frame.Writer

	running struct {
		sync.Mutex             // protects pids
		pids       map[int]int // process group by Run's ID
	}
}

func agent() error {
	port, err := openPort()
	if err != nil {
		return err
	}
	defer port.Close()
	s := &server{out: frame.NewWriter(port)}
	s.running.pids = map[int]int{}
	limits()
	if err := s.out.Write(frame.Up{Hello: bootTimes()}); err != nil {
		return err
	}
	in := frame.NewReader(port)
	for {
		var d frame.Down
		switch err := in.Read(&d); {
		case errors.Is(err, io.EOF):
			return errors.New("the owner of the machine is gone")
		case err != nil:
			return err
		}
		switch {
		case d.Off:
			return nil
		case d.Setup != nil:
			s.setup(d.Setup)
		case d.Run != nil:
			s.start(d.ID, d.Run)
		case d.Signal != 0:
			s.signal(d.ID, d.Signal)
		}
	}
}

// openPort finds the serial port by its name.
func openPort() (*os.File, error) {
	names, err := filepath.Glob("/sys/class/virtio-ports/*/name")
	if err != nil {
		return nil, err
	}
	for _, n := range names {
		if text, err := os.ReadFile(n); err == nil && strings.TrimSpace(string(text)) == frame.Port {
			return os.OpenFile("/dev/"+filepath.Base(filepath.Dir(n)), os.O_RDWR, 0)
		}
	}
	return nil, fmt.Errorf("the machine has no serial port named %s among %d", frame.Port, len(names))
}

// limits are those of a compute node: memory can be registered without bound.
func limits() {
	for _, l := range []struct {
		what      int
		soft, max uint64
	}{{unix.RLIMIT_MEMLOCK, unix.RLIM_INFINITY, unix.RLIM_INFINITY}, {unix.RLIMIT_NOFILE, 1024, 524288}} {
		if err := unix.Setrlimit(l.what, &unix.Rlimit{Cur: l.soft, Max: l.max}); err != nil {
			fmt.Println("weft lab: limit", l.what, err)
		}
	}
	// Go raises the limit of files for itself, and gives its children what it found unless one was set since.
	os.WriteFile("/proc/sys/kernel/core_pattern", []byte("|/bin/false"), 0)
}

func (s *server) setup(c *frame.Setup) {
	before := uptime()
	if err := setup(c); err != nil {
		s.out.Write(frame.Up{Failed: err.Error()})
		return
	}
	s.out.Write(frame.Up{Ready: &frame.Ready{Network: uptime() - before}})
}

// start runs a program in a process group of its own and reports its output and end.
func (s *server) start(id int, r *frame.Run) {
	cmd, err := s.command(id, r)
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		code := 126
		if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) {
			code = 127
		}
		s.out.Write(frame.Up{ID: id, Exit: &frame.Status{Code: code, Error: err.Error()}})
		return
	}
	s.running.Lock()
	s.running.pids[id] = cmd.Process.Pid
	s.running.Unlock()
	go func() {
		err := cmd.Wait()
		s.running.Lock()
		delete(s.running.pids, id)
		s.running.Unlock()
		s.out.Write(frame.Up{ID: id, Exit: status(cmd, err)})
	}()
}

func (s *server) command(id int, r *frame.Run) (*exec.Cmd, error) {
	if len(r.Args) == 0 {
		return nil, errors.New("no program was named")
	}
	for _, v := range r.Env {
		if path, ok := strings.CutPrefix(v, "PATH="); ok {
			os.Setenv("PATH", path) // where exec looks
		}
	}
	cmd := exec.Command(r.Args[0], r.Args[1:]...)
	cmd.Env, cmd.Dir = r.Env, r.Dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Stdout = &stream{s.out, id, 1}
	cmd.Stderr = &stream{s.out, id, 2}
	return cmd, cmd.Err
}

func status(cmd *exec.Cmd, err error) *frame.Status {
	st := &frame.Status{Code: cmd.ProcessState.ExitCode()}
	if w, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		st.Code = 128 + int(w.Signal())
		st.Error = w.Signal().String()
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		st.Error = err.Error()
	}
	return st
}

func (s *server) signal(id, sig int) {
	s.running.Lock()
	pid, ok := s.running.pids[id]
	s.running.Unlock()
	if ok {
		syscall.Kill(-pid, syscall.Signal(sig))
	}
}

// stream carries a program's output.
type stream struct {
	out *frame.Writer
	id  int
	n   int
}

func (s *stream) Write(b []byte) (int, error) {
	for at := 0; at < len(b); at += frame.Chunk {
		if err := s.out.Write(frame.Up{ID: s.id, Stream: s.n, Data: b[at:min(at+frame.Chunk, len(b))]}); err != nil {
			return at, err
		}
	}
	return len(b), nil
}
