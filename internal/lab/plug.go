package lab

import (
	"fmt"
	"os"
	"os/exec"

	"golang.org/x/sys/unix"
)

// plugs are what the QEMUs get of a cable: a socket for each end. They are open here until the machines have started.
type plugs [2]*os.File

// newPlugs returns two sockets that are connected with each other. Connected, because QEMU waits for room in a full one. A socket
// with a name to send to always says that it has room: QEMU's main loop then tries again without a pause and holds its machine's
// lock (7.2.22: all of a CPU). With both ends full, both machines stood still for seconds.
func newPlugs() (plugs, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return plugs{}, err
	}
	return plugs{os.NewFile(uintptr(fds[0]), "plug"), os.NewFile(uintptr(fds[1]), "plug")}, nil
}

// lay makes the plugs of all cables between machines, with a port between their ends where the configuration wants one.
func (l *Lab) lay() error {
	if l.config.Nodes == 1 {
		return nil // its cables are inside
	}
	for _, c := range l.Cables {
		p, err := newPlugs()
		if err == nil && l.config.Between != 0 {
			p, err = l.between(p)
		}
		if err != nil {
			return fmt.Errorf("cable %d: %w", c.Number, err)
		}
		l.plugs = append(l.plugs, p)
	}
	return nil
}

// hand gives a QEMU the plugs of its node, and a network card at each.
func (l *Lab) hand(cmd *exec.Cmd, node int) {
	for _, c := range l.Cables {
		for i, e := range c.Ends {
			if e.Node != node || l.plugs == nil {
				continue
			}
			const first = 3 // of a child's descriptors that are not its standard ones
			id, fd := fmt.Sprintf("n%d", c.Number), first+len(cmd.ExtraFiles)
			cmd.ExtraFiles = append(cmd.ExtraFiles, l.plugs[c.Number][i])
			cmd.Args = append(cmd.Args, "-netdev", fmt.Sprintf("dgram,id=%s,local.type=fd,local.str=%d", id, fd),
				"-device", fmt.Sprintf("virtio-net-pci,netdev=%s,mac=%s,romfile=", id, mac(c.Number, i)))
		}
	}
}

// letGo closes what the machines have now: a plug that nobody holds is a machine that is gone.
func (l *Lab) letGo() {
	for _, p := range l.plugs {
		p[0].Close()
		p[1].Close()
	}
	l.plugs = nil
}
