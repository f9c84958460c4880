package main

import (
	"errors"
	"fmt"
	"time"

	"weft/internal/host"
)

const (
	limit    = 2 * time.Minute
	warnings = 2 // NCCL's number for their level
)

// rig is a pair of host processes with a plugin in each.
type rig struct {
	a, b   *host.Host
	na, nb *host.Net
	dev    int // that crowds connect on, on either side
}

// newRig starts two hosts, one on each of the first two cores, and initialises the newest net table that the plugin exports.
func (c *config) newRig(plugin string, env ...string) (*rig, error) {
	return c.newRigIn([2]string{}, plugin, env...)
}

// newRigIn starts them in network namespaces.
func (c *config) newRigIn(ns [2]string, plugin string, env ...string) (*rig, error) {
	r, err := c.openRig(ns, plugin, env...)
	if err != nil {
		return nil, err
	}
	for cpu, h := range []*host.Host{r.a, r.b} {
		if _, err := h.Call("progress", "proc.pin", host.Args{"cpu", cpu}); err != nil {
			r.close()
			return nil, err
		}
	}
	return r, nil
}

// openRig is newRigIn with hosts that the scheduler moves as it likes, as it moves NCCL's proxies.
func (c *config) openRig(ns [2]string, plugin string, env ...string) (*rig, error) {
	r := &rig{}
	for i, side := range []struct {
		h **host.Host
		n **host.Net
	}{{&r.a, &r.na}, {&r.b, &r.nb}} {
		var h *host.Host
		err := inside(ns[i], func() (err error) {
			h, err = host.Start(host.Options{Bin: c.host(), Name: string(rune('a' + i)),
				Env: append([]string{"NCCL_SOCKET_IFNAME=" + c.iface, "NCCL_DEBUG=WARN"}, env...), Deadline: limit})
			return err
		})
		if err != nil {
			r.close()
			return nil, err
		}
		*side.h = h
		if *side.n, err = start(h, plugin); err != nil {
			r.close()
			return nil, fmt.Errorf("%s: %w", plugin, err)
		}
	}
	return r, nil
}

// newCrowdRig is one for thousands of connections, which need descriptors, and would write as many lines: its hosts take
// warnings alone, as NCCL does.
func (c *config) newCrowdRig(plugin string, env ...string) (*rig, error) {
	r, err := c.newRig(plugin, env...)
	if err != nil {
		return nil, err
	}
	for _, h := range []*host.Host{r.a, r.b} {
		_, err := h.Call("main", "log.most", host.Args{"level", warnings})
		if err == nil {
			_, err = h.RaiseFiles()
		}
		if err != nil {
			r.close()
			return nil, err
		}
	}
	return r, nil
}

func start(h *host.Host, plugin string) (*host.Net, error) {
	lib, err := h.Load(plugin)
	if err != nil {
		return nil, err
	}
	tables, err := lib.Tables(host.FamilyNet)
	if err != nil {
		return nil, err
	}
	if len(tables) == 0 {
		return nil, errors.New("exports no net table")
	}
	newest := 0
	for _, v := range tables {
		newest = max(newest, v)
	}
	n, err := lib.BindNet(newest)
	if err != nil {
		return nil, err
	}
	if err := n.Init(); err != nil {
		return nil, err
	}
	if devices, err := n.Devices(); err != nil || devices == 0 {
		return nil, errors.Join(err, errors.New("no device"))
	}
	return n, nil
}

func (r *rig) close() {
	for _, h := range []*host.Host{r.a, r.b} {
		if h != nil {
			h.Kill()
		}
	}
}

// connect makes one connection from one side to the other, on the first devices.
func connect(from, to *host.Net, fh, th *host.Host) (send, recv host.Ptr, err error) {
	return connectOn(0, from, to, fh, th)
}

// connectOn makes one on the devices of that number.
func connectOn(dev int, from, to *host.Net, fh, th *host.Host) (send, recv host.Ptr, err error) {
	handle, listen, err := to.Listen(dev)
	if err != nil {
		return 0, 0, err
	}
	text, err := th.Read(handle, int64(to.HandleSize()))
	if err != nil {
		return 0, 0, err
	}
	there, err := fh.Alloc(128)
	if err != nil {
		return 0, 0, err
	}
	if err := fh.Write(there, text); err != nil {
		return 0, 0, err
	}
	type end struct {
		comm host.Ptr
		err  error
	}
	accepted := make(chan end, 1)
	go func() {
		c, err := to.AcceptPoll(listen, limit/4)
		accepted <- end{c, err}
	}()
	send, err = from.ConnectPoll(dev, there, limit/4)
	in := <-accepted
	return send, in.comm, errors.Join(err, in.err, to.CloseListen(listen))
}

// buffer allocates and registers memory with a comm.
func buffer(h *host.Host, n *host.Net, comm host.Ptr, size int64) (addr, mh host.Ptr, err error) {
	if addr, err = h.Alloc(size); err != nil {
		return 0, 0, err
	}
	if err = h.FillByte(addr, size, 0x5a); err != nil {
		return 0, 0, err
	}
	mh, err = n.RegMr(comm, addr, size)
	return addr, mh, err
}

// both runs a command on each side at once and returns the replies.
func (r *rig) both(cmdA string, a host.Args, cmdB string, b host.Args) (*host.Reply, *host.Reply, error) {
	pb := r.b.Go("progress", cmdB, b)
	pa := r.a.Go("progress", cmdA, a)
	ra, errA := pa.Wait()
	rb, errB := pb.Wait()
	return ra, rb, errors.Join(errA, errB)
}

// plain opens a TCP connection of the host's own loop, without any plugin: descriptors on both sides.
func (r *rig) plain() (fdA, fdB int64, err error) {
	l, err := r.b.Call("progress", "plain.listen", host.Args{"addr", "127.0.0.1"})
	if err != nil {
		return 0, 0, err
	}
	p := r.b.Go("progress", "plain.accept", host.Args{"fd", l.Int("fd")})
	ca, err := r.a.Call("progress", "plain.connect", host.Args{"addr", "127.0.0.1", "port", l.Int("port")})
	cb, errB := p.Wait()
	return ca.Int("fd"), cb.Int("fd"), errors.Join(err, errB)
}
