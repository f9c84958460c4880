package lab

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"weft/internal/lab/frame"
	"weft/internal/lab/image"
)

// accelerator is KVM only where this machine's CPU has virtualisation itself: elsewhere /dev/kvm may open and be of no use.
func accelerator() string {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return "tcg"
	}
	defer f.Close()
	s := bufio.NewScanner(f)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		key, flags, _ := strings.Cut(s.Text(), ":")
		if strings.TrimSpace(key) != "flags" {
			continue
		}
		for _, f := range strings.Fields(flags) {
			if f == "vmx" || f == "svm" {
				if unix.Access("/dev/kvm", unix.R_OK|unix.W_OK) == nil {
					return "kvm"
				}
				return "tcg"
			}
		}
		return "tcg"
	}
	return "tcg"
}

// qemuArgs is the command line of one machine, without its cables. Paths are relative to the run's folder, where QEMU runs, for the name of
// a socket has at most 107 bytes.
func (l *Lab) qemuArgs(node int) []string {
	c := l.config
	kargs := "console=ttyS0 quiet panic=-1 mitigations=off audit=0 net.ifnames=0"
	accel := []string{"-accel", "kvm", "-cpu", "host"}
	if l.accel == "tcg" {
		accel = []string{"-accel", "tcg,thread=multi,tb-size=256", "-cpu", "max,la57=off"}
		// Without the true frequency the machine's clocks drift under load.
		kargs += fmt.Sprintf(" no_timer_check tsc=reliable tsc_early_khz=%d", l.tscKHz)
	}
	a := append([]string{"-name", nodeName(node), "-machine", "q35"}, accel...)
	a = append(a, "-smp", fmt.Sprint(c.CPUs), "-m", fmt.Sprint(c.MemMB),
		"-nodefaults", "-no-user-config", "-display", "none", "-vga", "none", "-no-reboot",
		"-kernel", l.kernel.Vmlinux(), "-initrd", initrdFile, "-append", kargs+" -- "+frame.Argument,
		"-chardev", "stdio,id=con,signal=off", "-serial", "chardev:con",
		"-device", "virtio-serial-pci", "-chardev", "socket,id=ctl,path="+ctlSocket(node),
		"-device", "virtserialport,chardev=ctl,name="+frame.Port,
		"-fsdev", "local,id=root,path=/,security_model=none,readonly=on,multidevs=remap",
		"-device", "virtio-9p-pci,fsdev=root,mount_tag=root",
		"-object", "rng-random,id=rng,filename=/dev/urandom", "-device", "virtio-rng-pci,rng=rng")
	for i, path := range c.Share {
		tag := shareTag(i)
		a = append(a, "-fsdev", "local,id="+tag+",path="+strings.ReplaceAll(path, ",", ",,")+",security_model=none,multidevs=remap",
			"-device", "virtio-9p-pci,fsdev="+tag+",mount_tag="+tag)
	}
	return a
}

func shareTag(i int) string            { return fmt.Sprintf("share%d", i) }
func ctlSocket(node int) string        { return fmt.Sprintf("ctl%d", node) }
func consoleFile(node int) string      { return fmt.Sprintf("console%d.log", node) }
func qemuLog(node int) string          { return fmt.Sprintf("qemu%d.log", node) }
func (l *Lab) path(name string) string { return filepath.Join(l.dir, name) }

// process is a QEMU that this process owns: it dies with the goroutine's thread, should this process be killed.
type process struct {
	pid  int
	done chan struct{} // closed when it has ended
	err  error         // how, once done is closed
}

func startProcess(cmd *exec.Cmd) (*process, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	p := &process{done: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // the kernel sends Pdeathsig when the thread that forked ends
		err := cmd.Start()
		if err == nil {
			p.pid = cmd.Process.Pid
		}
		started <- err
		if err == nil {
			p.err = cmd.Wait()
			close(p.done)
		}
		runtime.UnlockOSThread()
	}()
	return p, <-started
}

// kill ends the process, for which a moment is enough, and waits for that.
func (p *process) kill() {
	select {
	case <-p.done:
		return
	default:
	}
	syscall.Kill(p.pid, syscall.SIGKILL)
	select {
	case <-p.done:
	case <-time.After(10 * time.Second): // it is stuck in the kernel; nothing more can be done here
	}
}

// qemu finds the program.
func qemu() (string, error) {
	return image.Tool("qemu-system-x86_64", "qemu-system-x86", "the lab's machines run in it")
}
