// Package lab boots virtual machines whose root is this machine's file system and whose network cards carry Soft-RoCE, joins
// them by cables, runs programs on them, and breaks things on request. Its parts: image (what is booted), guest (weft inside
// the machine), frame (what the two say to each other).
package lab

import (
	"bytes"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"weft/internal/lab/frame"
	"weft/internal/lab/image"
)

// Config is what to boot. Check fills in what is zero.
type Config struct {
	Nodes    int           // machines, 1 to 4 (1)
	Shape    Shape         // of several (mesh)
	Cables   int           // between every two neighbours (1); of one machine with itself (3)
	MTU      int           // of the interfaces (4500, for RDMA with 4096)
	Between  int           // of a port between the ends of each cable, which drops what is larger (no such port)
	CPUs     int           // of each machine (2 for one machine, else 1)
	MemMB    int           // of each machine (1024 for one machine, else 512)
	Kernel   string        // 6.1 or 6.12 (6.1)
	Share    []string      // folders of the host that are writable there; all others are seen and not changed
	Boot     time.Duration // until all machines must be up (2 minutes)
	Program  string        // a static weft, which runs in the machines (this one)
	Console  io.Writer     // gets what the machines' kernels print
	Note     func(format string, args ...any)
	KeepLogs bool // leave the run's folder, with consoles and QEMU's messages
}

// Lab is a set of running machines.
type Lab struct {
	Nodes  []*Node
	Cables []Cable

	config Config
	kernel *image.Kernel
	accel  string
	tscKHz int64
	dir    string
	plugs  []plugs // of the cables by number, until the machines have started
	wires  []*wire // of the cables by number, with Config.Between
	close  sync.Once
}

const initrdFile = "initrd"

// Check fills in what is zero and refuses what cannot be.
func (c *Config) Check() error {
	def := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	def(&c.Nodes, 1)
	one := c.Nodes == 1
	pick := func(single, several int) int {
		if one {
			return single
		}
		return several
	}
	def(&c.Cables, pick(3, 1))
	def(&c.MTU, 4500)
	def(&c.CPUs, pick(2, 1))
	def(&c.MemMB, pick(1024, 512))
	if c.Shape == "" {
		c.Shape = Mesh
	}
	if c.Kernel == "" {
		c.Kernel = "6.1"
	}
	if c.Boot == 0 {
		c.Boot = 2 * time.Minute
	}
	if c.Note == nil {
		c.Note = func(string, ...any) {}
	}
	for _, b := range []struct {
		what     string
		v, lo, h int
	}{{"nodes", c.Nodes, 1, 4}, {"cables", c.Cables, 1, 8}, {"MTU", c.MTU, 1280, 9000}, {"CPUs", c.CPUs, 1, 64}, {"memory (MB)", c.MemMB, 256, 1 << 16}} {
		if b.v < b.lo || b.v > b.h {
			return fmt.Errorf("%s: %d, want %d to %d", b.what, b.v, b.lo, b.h)
		}
	}
	if c.Between != 0 && (one || c.Between < 1280 || c.Between > 9000) {
		return fmt.Errorf("MTU between: %d, want 1280 to 9000, and several nodes", c.Between)
	}
	if _, err := c.Shape.pairs(c.Nodes); err != nil {
		return err
	}
	for i, s := range c.Share {
		abs, err := filepath.Abs(s)
		if err != nil {
			return err
		}
		if info, err := os.Stat(abs); err != nil || !info.IsDir() {
			return fmt.Errorf("share %s: no such folder", s)
		}
		c.Share[i] = abs
	}
	return nil
}

// Boot starts the machines and returns when all are set up. Close must follow.
func Boot(ctx context.Context, c Config) (*Lab, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	l := &Lab{config: c, accel: accelerator()}
	var err error
	if l.Cables, err = cables(c.Shape, c.Nodes, c.Cables); err != nil {
		return nil, err
	}
	bin, err := qemu()
	if err != nil {
		return nil, err
	}
	for _, t := range []string{"ip", "rdma"} {
		if _, err := image.Tool(t, "iproute2", "the lab's machines use this machine's"); err != nil {
			return nil, err
		}
	}
	program, err := guestProgram(c.Program)
	if err != nil {
		return nil, err
	}
	if l.kernel, err = image.Get(ctx, c.Kernel, c.Note); err != nil {
		return nil, err
	}
	if l.dir, err = os.MkdirTemp("", "weft-lab-"); err != nil {
		return nil, err
	}
	if err := l.boot(ctx, bin, program); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// guestProgram reads the weft that the machines run as their first process, long before they have libraries.
func guestProgram(path string) ([]byte, error) {
	if path == "" {
		var err error
		if path, err = os.Executable(); err != nil {
			return nil, err
		}
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	f, err := elf.NewFile(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return nil, fmt.Errorf("%s needs shared libraries, and the lab's machines start it before they have any: build it with CGO_ENABLED=0", path)
		}
	}
	return data, nil
}

func (l *Lab) boot(ctx context.Context, bin string, program []byte) error {
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, l.config.Boot)
	defer cancel()
	if err := l.kernel.Initrd(l.path(initrdFile), program); err != nil {
		return err
	}
	if l.accel == "tcg" {
		l.tscKHz = tscKHz()
	}
	defer l.letGo()
	if err := l.lay(); err != nil {
		return err
	}
	for i := range l.config.Nodes {
		n, err := l.start(bin, i)
		if err != nil {
			return err
		}
		l.Nodes = append(l.Nodes, n)
	}
	l.letGo()
	errs := make([]error, len(l.Nodes))
	var wg sync.WaitGroup
	for i, n := range l.Nodes {
		wg.Go(func() {
			if errs[i] = n.awaitReady(ctx); errs[i] != nil {
				errs[i] = fmt.Errorf("%s did not come up: %w%s", nodeName(i), errs[i], n.lastWords())
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	l.config.Note("%s", l.figures(time.Since(began)))
	return nil
}

// start runs the QEMU of a node, which connects to a socket that is there before.
func (l *Lab) start(bin string, i int) (*Node, error) {
	ctl, err := net.ListenUnix("unix", &net.UnixAddr{Name: l.path(ctlSocket(i)), Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("control socket: %w (a shorter TMPDIR helps when the name is too long)", err)
	}
	n := &Node{Number: i, lab: l, listener: ctl}
	console, err := os.Create(l.path(consoleFile(i)))
	if err != nil {
		return nil, errors.Join(err, ctl.Close())
	}
	defer console.Close()
	says, err := os.Create(l.path(qemuLog(i)))
	if err != nil {
		return nil, errors.Join(err, ctl.Close())
	}
	defer says.Close()
	cmd := exec.Command(bin, l.qemuArgs(i)...)
	l.hand(cmd, i)
	cmd.Dir, cmd.Stderr = l.dir, says
	cmd.Stdout = console
	if l.config.Console != nil {
		keep, err := os.OpenFile(console.Name(), os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			return nil, errors.Join(err, ctl.Close())
		}
		cmd.Stdout = io.MultiWriter(keep, l.config.Console)
		n.console = keep
	}
	fmt.Fprintf(says, "%s\n", strings.Join(cmd.Args, " "))
	if n.process, err = startProcess(cmd); err != nil {
		return nil, errors.Join(fmt.Errorf("start QEMU: %w", err), ctl.Close())
	}
	return n, nil
}

// figures says what the boot took.
func (l *Lab) figures(took time.Duration) string {
	last := l.Nodes[0]
	for _, n := range l.Nodes {
		if n.boot.Root+n.network > last.boot.Root+last.network {
			last = n
		}
	}
	b := last.boot
	what := "machine"
	if len(l.Nodes) > 1 {
		what = "machines"
	}
	return fmt.Sprintf("%d %s up in %.1f s (kernel %.1f, modules for the root %.1f, root and RDMA modules %.1f, network %.1f), linux %s, %s",
		len(l.Nodes), what, took.Seconds(), b.Kernel, b.Modules-b.Kernel, b.Root-b.Modules, last.network, l.kernel.Release, l.accel)
}

// Close powers the machines off and removes what the run left.
func (l *Lab) Close() {
	l.close.Do(func() {
		for _, n := range l.Nodes {
			n.Kill()
		}
		for _, w := range l.wires {
			w.close()
		}
		if l.config.KeepLogs {
			l.config.Note("consoles and QEMU's messages stay in %s", l.dir)
			os.Remove(l.path(initrdFile))
			return
		}
		os.RemoveAll(l.dir)
	})
}

// mounts are the shares as the machine sees them.
func (c *Config) mounts() []frame.Mount {
	var out []frame.Mount
	for i, p := range c.Share {
		out = append(out, frame.Mount{Tag: shareTag(i), Path: p})
	}
	return out
}
