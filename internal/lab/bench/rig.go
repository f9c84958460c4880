package main

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"weft/internal/host"
	"weft/internal/link"
)

// limit bounds every step.
const limit = time.Minute

// largest message.
const largest = 1 << 20

// rig is a pair of processes with the library in each, one on either device and core, and a connection each way.
type rig struct {
	hosts [2]*host.Host
	nets  [2]*host.Net
	send  [2]host.Ptr // comm of each side
	recv  [2]host.Ptr
	buf   [2]host.Ptr
	smh   [2]host.Ptr
	rmh   [2]host.Ptr

	mu  sync.Mutex // protects log
	log []string
}

// newRig connects two processes both ways, with so many queue pairs per connection.
func (c *config) newRig(qps int) (*rig, error) {
	r := &rig{}
	if err := r.open(c, qps); err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

func (r *rig) open(c *config, qps int) error {
	for i, device := range c.devices {
		env := []string{"NCCL_IB_HCA==" + device, fmt.Sprintf("NCCL_IB_QPS_PER_CONNECTION=%d", qps), "NCCL_IB_SPLIT_DATA_ON_QPS=1", "WEFT_LAZY=off"}
		var err error
		if r.hosts[i], err = host.Start(host.Options{Bin: link.Dist(c.dist).Program("weft-host"), Name: device, Env: env, Deadline: limit, Log: r.note}); err != nil {
			return err
		}
		lib, err := r.hosts[i].Load(link.Dist(c.dist).Library())
		if err != nil {
			return err
		}
		if r.nets[i], err = lib.BindNet(12); err != nil {
			return err
		}
		if err := r.nets[i].Init(); err != nil {
			return err
		}
		if _, err := r.hosts[i].Call("progress", "proc.pin", host.Args{"cpu", i}); err != nil {
			return err
		}
	}
	for i := range r.hosts {
		if err := r.connect(i, 1-i); err != nil {
			return err
		}
	}
	if err := r.overRDMA(c); err != nil {
		return err
	}
	return r.register()
}

func (r *rig) note(l host.LogLine) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.log = append(r.log, l.Text)
}

// overRDMA wants all four ends of the connections on the devices.
func (r *rig) overRDMA(c *config) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	ends := 0
	for _, text := range r.log {
		for _, d := range c.devices {
			if strings.Contains(text, " over "+d) {
				ends++
			}
		}
	}
	if ends != 4 {
		return fmt.Errorf("%d of 4 ends of the connections are over RDMA:\n%s", ends, strings.Join(r.log, "\n"))
	}
	return nil
}

func (r *rig) close() {
	for _, h := range r.hosts {
		if h != nil {
			h.Kill()
		}
	}
}

// connect makes one connection.
func (r *rig) connect(from, to int) error {
	handle, listen, err := r.nets[to].Listen(0)
	if err != nil {
		return err
	}
	text, err := r.hosts[to].Read(handle, int64(r.nets[to].HandleSize()))
	if err != nil {
		return err
	}
	there, err := r.hosts[from].Alloc(128)
	if err != nil {
		return err
	}
	if err := r.hosts[from].Write(there, text); err != nil {
		return err
	}
	accepted := make(chan error, 1)
	go func() {
		var err error
		r.recv[to], err = r.nets[to].AcceptPoll(listen, limit)
		accepted <- err
	}()
	r.send[from], err = r.nets[from].ConnectPoll(0, there, limit)
	return errors.Join(err, <-accepted, r.nets[to].CloseListen(listen))
}

// register gives each side two messages' room, known to both of its comms.
func (r *rig) register() error {
	for i, h := range r.hosts {
		var err error
		if r.buf[i], err = h.Alloc(2 * largest); err != nil {
			return err
		}
		if err = h.FillByte(r.buf[i], 2*largest, 0x5a); err != nil {
			return err
		}
		if r.smh[i], err = r.nets[i].RegMr(r.send[i], r.buf[i], 2*largest); err != nil {
			return err
		}
		if r.rmh[i], err = r.nets[i].RegMr(r.recv[i], r.buf[i], 2*largest); err != nil {
			return err
		}
	}
	return nil
}

// both runs a loop on each side at once.
func (r *rig) both(loop string, a, b host.Args) (*host.Reply, *host.Reply, error) {
	pb := r.hosts[1].Go("progress", loop, b)
	pa := r.hosts[0].Go("progress", loop, a)
	ra, errA := pa.Wait()
	rb, errB := pb.Wait()
	return ra, rb, errors.Join(errA, errB)
}

// bandwidth is in MB/s, as the receiver sees it; all messages go from and to one place, as perftest's do.
func (r *rig) bandwidth(size, count int64, window int) (float64, error) {
	common := host.Args{"size", size, "span", size, "count", count, "window", window, "limit", limit}
	_, rb, err := r.both("bw", append(host.Args{"role", "send", "comm", r.send[0], "mh", r.smh[0], "buf", r.buf[0]}, common...),
		append(host.Args{"role", "recv", "comm", r.recv[1], "mh", r.rmh[1], "buf", r.buf[1]}, common...))
	return float64(size*count) / rb.Float("us"), err
}

// pingPong is half a round trip's median in us.
func (r *rig) pingPong(size, iters int64) (float64, error) {
	side := func(i int, role string) host.Args {
		return host.Args{"role", role, "send", r.send[i], "recv", r.recv[i], "smh", r.smh[i], "rmh", r.rmh[i], "buf", r.buf[i],
			"size", size, "iters", iters, "warm", iters / 10, "limit", limit}
	}
	ra, _, err := r.both("lat", side(0, "ping"), side(1, "pong"))
	return ra.Float("p50") / 1e3, err
}
