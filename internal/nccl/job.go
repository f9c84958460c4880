package nccl

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Job is what ranks are started for.
type Job struct {
	Release Release
	Network Network
	Ranks   int
	Mode    []string // and its keys, as the driver takes them
	Env     []string
	Dir     string   // of ids and logs
	Wrap    []string // a command in front of the driver's
	Limit   time.Duration
	Threads bool // the ranks are threads of one process, each with a device
	Pin     bool // each process has CPUs of its own
	PerHost int  // ranks of a host, whose devices NVLinks join; otherwise each process is a host of its own
}

// Run is a job whose ranks have started.
type Run struct {
	Job
	Ranks []*Rank
}

// Rank is one process.
type Rank struct {
	Number int
	Stdin  io.WriteCloser
	Cmd    *exec.Cmd

	mu    sync.Mutex
	lines []string
	more  *sync.Cond // a line, or the end
	ended bool
	err   error
}

// settings are those under which a kernel is played; what the host can do without a second GPU is switched off.
var settings = []string{
	"NCCL_NET_PLUGIN=weft", "NCCL_NET=weft", "NCCL_SOCKET_IFNAME=lo", "NCCL_DEBUG=INFO",
	"NCCL_P2P_DISABLE=1", "NCCL_SHM_DISABLE=1", "NCCL_CUMEM_ENABLE=0", "NCCL_RAS_ENABLE=0",
	"NCCL_MAX_NCHANNELS=2", "NCCL_MAX_P2P_NCHANNELS=2", "NCCL_TREE_THRESHOLD=0", // 2.4, which knows no NCCL_ALGO
}

// Start starts all ranks. Who calls it ends them with Stop.
func Start(ctx context.Context, j Job) (*Run, error) {
	if j.Limit == 0 {
		j.Limit = 3 * time.Minute
	}
	algo := "NCCL_ALGO=Ring,Tree"
	if !j.Release.Since(2, 20) {
		algo = "NCCL_ALGO=Ring"
	}
	r := &Run{Job: j}
	processes := j.Ranks
	if j.Threads {
		processes = 1
	}
	for i := range processes {
		pinned, err := j.pinned(i)
		if err != nil {
			r.Stop()
			return nil, err
		}
		args := append(append(pinned, j.Wrap...), j.Release.Driver(), fmt.Sprint(i), fmt.Sprint(j.Ranks), filepath.Join(j.Dir, "id"))
		args = append(args, j.Mode...)
		cmd := exec.CommandContext(ctx, args[0], args[1:]...)
		own := []string{"LD_LIBRARY_PATH=" + j.Release.Dir, algo}
		if j.Release.LogsToFile() {
			own = append(own, "NCCL_DEBUG_FILE="+r.logFile(i))
		}
		cmd.Env = join(os.Environ(), own, settings, j.devices(i), j.Network.env, j.Env)
		rank := &Rank{Number: i, Cmd: cmd}
		rank.more = sync.NewCond(&rank.mu)
		if err := rank.start(); err != nil {
			r.Stop()
			return nil, fmt.Errorf("rank %d: %w", i, err)
		}
		r.Ranks = append(r.Ranks, rank)
	}
	return r, nil
}

// devices tells a process what its host has, and which device is its own.
func (j Job) devices(process int) []string {
	switch {
	case j.Threads:
		return []string{"NCCL_HOSTID=simgpu0", fmt.Sprintf("SIMGPU_DEVICES=%d", j.Ranks)}
	case j.PerHost > 1:
		return []string{
			fmt.Sprintf("NCCL_HOSTID=simgpu%d", process/j.PerHost), fmt.Sprintf("SIMGPU_DEVICES=%d", j.PerHost),
			fmt.Sprintf("SIMGPU_DEVICE=%d", process%j.PerHost), "SIMGPU_NVLINK=1", "NCCL_P2P_DISABLE=0",
		}
	}
	return []string{fmt.Sprintf("NCCL_HOSTID=simgpu%d", process)}
}

func (r *Run) logFile(rank int) string { return filepath.Join(r.Dir, fmt.Sprintf("nccl.%d.log", rank)) }

func (k *Rank) start() (err error) {
	if k.Stdin, err = k.Cmd.StdinPipe(); err != nil {
		return err
	}
	out, in := io.Pipe()
	k.Cmd.Stdout, k.Cmd.Stderr = in, in
	k.Cmd.WaitDelay = 5 * time.Second
	k.Cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // no rank outlives its owner, however that ends
	read, started := make(chan struct{}), make(chan error)
	go func() {
		defer close(read)
		for s := bufio.NewScanner(out); s.Scan(); {
			k.mu.Lock()
			k.lines = append(k.lines, s.Text())
			k.more.Broadcast()
			k.mu.Unlock()
		}
		io.Copy(io.Discard, out)
	}()
	go func() {
		runtime.LockOSThread() // the kernel sends Pdeathsig when the thread that forked ends: this one ends after the rank
		defer runtime.UnlockOSThread()
		err := k.Cmd.Start()
		started <- err
		if err == nil {
			err = k.Cmd.Wait()
		}
		in.Close()
		<-read
		k.mu.Lock()
		k.ended, k.err = true, err
		k.more.Broadcast()
		k.mu.Unlock()
	}()
	return <-started
}

// errEnded is for who waits for a line that will not come.
var errEnded = errors.New("it has ended")

// wait waits until done() is true, with the lock held, for at most limit.
func (k *Rank) wait(limit time.Duration, done func() bool) error {
	late := false
	timer := time.AfterFunc(limit, func() {
		k.mu.Lock()
		late = true
		k.more.Broadcast()
		k.mu.Unlock()
	})
	defer timer.Stop()
	k.mu.Lock()
	defer k.mu.Unlock()
	for !done() {
		switch {
		case k.ended:
			return errEnded
		case late:
			return fmt.Errorf("nothing for %v", limit)
		}
		k.more.Wait()
	}
	return nil
}

// Says waits for a line that has text in it, and returns it.
func (k *Rank) Says(text string, limit time.Duration) (line string, err error) {
	err = k.wait(limit, func() bool {
		for _, l := range k.lines {
			if strings.Contains(l, text) {
				line = l
				return true
			}
		}
		return false
	})
	if err != nil {
		err = fmt.Errorf("rank %d has not said %q: %w; it said:\n%s", k.Number, text, err, k.Said())
	}
	return line, err
}

// End waits for the end of the process, and returns its error.
func (k *Rank) End(limit time.Duration) error {
	if err := k.wait(limit, func() bool { return k.ended }); err != nil {
		return fmt.Errorf("rank %d has not ended: %w; it said:\n%s", k.Number, err, k.Said())
	}
	if k.err != nil {
		return fmt.Errorf("rank %d: %w; it said:\n%s", k.Number, k.err, k.Said())
	}
	return nil
}

// Said is what the rank wrote so far, the end of it where that is much.
func (k *Rank) Said() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return strings.Join(k.lines[max(0, len(k.lines)-40):], "\n")
}

// all is all that the rank wrote so far.
func (k *Rank) all() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.lines)
}

// Go lets an idle rank go on.
func (k *Rank) Go() error {
	_, err := fmt.Fprintln(k.Stdin)
	return err
}

func (k *Rank) Signal(s syscall.Signal) error { return k.Cmd.Process.Signal(s) }

// Wait waits until all ranks have ended well.
func (r *Run) Wait() error {
	var errs []error
	for _, k := range r.Ranks {
		errs = append(errs, k.End(r.Limit))
	}
	return errors.Join(errs...)
}

// Stop ends what still runs.
func (r *Run) Stop() {
	for _, k := range r.Ranks {
		_ = k.Cmd.Process.Kill() // it may have ended
		_ = k.wait(30*time.Second, func() bool { return k.ended })
	}
}
