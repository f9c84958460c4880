// Package guest is weft inside a lab's machine: its first process, which mounts the host's file system as root, and the
// agent, which sets up the network and runs what the owner of the machine asks for.
package guest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"weft/internal/lab/frame"
)

// Main is the machine's first process, and, started by that one, the agent. It returns only when called elsewhere.
func Main() int {
	switch {
	case os.Getpid() == 1:
		first()
	case os.Getenv(agentMark) != "":
		if err := agent(); err != nil {
			fmt.Fprintln(os.Stderr, "weft lab:", err)
			return 1
		}
		return 0
	}
	fmt.Fprintf(os.Stderr, "weft %s: this is what weft lab runs inside its machines\n", frame.Argument)
	return 2
}

// agentMark carries the times of the boot to the agent.
const agentMark = "WEFT_LAB_BOOT"

// first never returns: when it did, the kernel would panic.
func first() {
	if err := boot(); err != nil {
		fmt.Println("weft lab: the machine does not come up:", err)
	}
	unix.Sync()
	unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
	select {}
}

// nineP are the options that are fast on the host's file system: nothing else writes what the machine reads.
const nineP = "trans=virtio,version=9p2000.L,msize=512000,cache="

func boot() error {
	for _, m := range [][2]string{{"proc", "/proc"}, {"sysfs", "/sys"}, {"devtmpfs", "/dev"}} {
		if err := mount(m[0], m[1], m[0], 0, ""); err != nil {
			return err
		}
	}
	kernel := uptime()
	if err := insertAll(false); err != nil {
		return err
	}
	modules := uptime()
	if err := mount("root", "/ro", "9p", unix.MS_RDONLY, nineP+"loose"); err != nil {
		return err
	}
	if err := mount("tmpfs", "/rw", "tmpfs", 0, "mode=755"); err != nil {
		return err
	}
	os.Mkdir("/rw/upper", 0o755)
	os.Mkdir("/rw/work", 0o755)
	if err := mount("overlay", "/new", "overlay", 0, "lowerdir=/ro,upperdir=/rw/upper,workdir=/rw/work"); err != nil {
		return err
	}
	if err := insertAll(true); err != nil {
		return err
	}
	if err := os.RemoveAll("/mod"); err != nil { // it is memory
		return err
	}
	if err := enter(); err != nil {
		return err
	}
	agent := exec.Command("/proc/self/exe", frame.Argument)
	agent.Env = []string{fmt.Sprintf("%s=%g %g %g", agentMark, kernel, modules, uptime())}
	agent.Stdout, agent.Stderr = os.Stdout, os.Stderr
	if err := agent.Start(); err != nil {
		return err
	}
	return reap(agent.Process.Pid)
}

// enter makes /new the root, and gives it what the running system has there.
func enter() error {
	for _, dir := range []string{"/proc", "/sys", "/dev"} {
		if err := unix.Mount(dir, "/new"+dir, "", unix.MS_MOVE, ""); err != nil {
			return fmt.Errorf("move %s: %w", dir, err)
		}
	}
	if err := os.Chdir("/new"); err != nil {
		return err
	}
	if err := unix.Mount(".", "/", "", unix.MS_MOVE, ""); err != nil {
		return fmt.Errorf("move the root: %w", err)
	}
	if err := unix.Chroot("."); err != nil {
		return err
	}
	if err := os.Chdir("/"); err != nil {
		return err
	}
	for _, dir := range []string{"/dev/pts", "/dev/shm"} {
		os.Mkdir(dir, 0o755)
	}
	for link, to := range map[string]string{"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2"} {
		os.Symlink(to, "/dev/"+link)
	}
	for _, m := range [][3]string{{"devpts", "/dev/pts", ""}, {"tmpfs", "/dev/shm", "mode=1777"}, {"tmpfs", "/run", "mode=755"}} {
		if err := mount(m[0], m[1], m[0], 0, m[2]); err != nil {
			return err
		}
	}
	return nil
}

func mount(what, where, kind string, flags uintptr, options string) error {
	if err := unix.Mount(what, where, kind, flags, options); err != nil {
		return fmt.Errorf("mount %s on %s as %s: %w", what, where, kind, err)
	}
	return nil
}

// insertAll loads the modules of the boot, or the rest, of which some may refuse: the lab says later what is missing.
func insertAll(rest bool) error {
	text, err := os.ReadFile("/mod/boot")
	if err != nil {
		return err
	}
	list := strings.Fields(string(text))
	if rest {
		if text, err = os.ReadFile("/mod/rest"); err != nil {
			return err
		}
		list = strings.Fields(string(text))
	}
	for _, name := range list {
		if err := insert(filepath.Join("/mod", name+".ko")); err != nil {
			fmt.Printf("weft lab: module %s: %v\n", name, err)
		}
	}
	return nil
}

func insert(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	err = unix.FinitModule(int(f.Fd()), "", 0)
	if err == unix.EEXIST {
		return nil
	}
	return err
}

// reap waits for the agent, and for every process whose parent is gone.
func reap(agent int) error {
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, 0, nil)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return fmt.Errorf("wait: %w", err)
		}
		if pid == agent {
			if status.ExitStatus() != 0 {
				return fmt.Errorf("its agent ended with status %#x", int(status))
			}
			return nil
		}
	}
}

// uptime is the time since the kernel began, in seconds.
func uptime() float64 {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano()).Seconds()
}

func bootTimes() *frame.Hello {
	var t [3]float64
	for i, s := range strings.Fields(os.Getenv(agentMark)) {
		if i < len(t) {
			t[i], _ = strconv.ParseFloat(s, 64)
		}
	}
	return &frame.Hello{Kernel: t[0], Modules: t[1], Root: t[2]}
}
