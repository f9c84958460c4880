package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"weft/internal/host"
	"weft/internal/rounds"
)

// connections measures connects one by one, a storm of 1,000, and what 1,000 and 10,000 connections hold.
func connections(c *config) error { return c.connections(c.plugins(), []int64{1000, 10_000}) }

// rdmaConnections is the same over simulated verbs, where 1,000 are asked for.
func rdmaConnections(c *config) error {
	env, remove, err := c.simulated()
	if err != nil {
		return err
	}
	defer remove()
	return c.connections(c.rdmaPlugins(), []int64{1000}, env...)
}

func (c *config) connections(plugins []string, counts []int64, env ...string) error {
	if err := c.oneByOne(plugins, env); err != nil {
		return err
	}
	for _, n := range counts {
		if err := c.storms(plugins, n, env); err != nil {
			return err
		}
	}
	return nil
}

// storms makes n connections at once with each plugin in turn, in alternating rounds if that does not take long, and shows medians.
func (c *config) storms(plugins []string, n int64, env []string) error {
	count := c.rounds
	if n > 1000 {
		count = 1
	}
	all := make([][]stormed, len(plugins))
	failed := make([]error, len(plugins))
	var bareRate, bareCPU []float64
	for range count {
		for i, plugin := range plugins {
			if failed[i] != nil {
				continue
			}
			f, err := storm(c, plugin, n, env)
			switch {
			case err != nil && plugin == c.library():
				return fmt.Errorf("%s, %d connections: %w", filepath.Base(plugin), n, err)
			case err != nil: // what another plugin cannot do is a figure too
				failed[i] = err
				continue
			}
			all[i] = append(all[i], f)
			bareRate, bareCPU = append(bareRate, f.bareRate), append(bareCPU, f.bareCPU)
		}
	}
	median := func(of []stormed, what func(f stormed) float64) float64 {
		var v []float64
		for _, f := range of {
			v = append(v, what(f))
		}
		return rounds.Median(v)
	}
	bare := rounds.Median(bareRate)
	fmt.Printf("  %-24s %6d at once: %.0f per second, CPU of both sides %.0f us each\n", "bare TCP", bareCount(n), bare, rounds.Median(bareCPU))
	for i, plugin := range plugins {
		if failed[i] != nil {
			fmt.Printf("  %-24s %6d at once: %v\n", filepath.Base(plugin), n, failed[i])
			continue
		}
		rate := median(all[i], func(f stormed) float64 { return f.rate })
		fmt.Printf("  %-24s %6d at once: %.0f per second (bare TCP %.1f times as many), p99 %.0f ms, CPU of both sides %.0f us each; %s\n",
			filepath.Base(plugin), n, rate, bare/rate, median(all[i], func(f stormed) float64 { return f.p99 }),
			median(all[i], func(f stormed) float64 { return f.cpu }), all[i][len(all[i])-1].held)
	}
	return nil
}

// connects makes n connections in sequence, and returns how many ms each connect took until its comm was there, sorted.
func (r *rig) connects(n int) (ms []float64, err error) {
	for range n {
		m, err := newStorm(r, 1)
		if err != nil {
			return nil, err
		}
		rep, _, err := m.connect(1)
		if err != nil {
			return nil, err
		}
		ms = append(ms, rep.Float("max")/1e6)
		if err := m.close(); err != nil {
			return nil, err
		}
	}
	slices.Sort(ms)
	return ms, nil
}

// oneByOne shows what the first connect of a process takes until its comm is there, in alternating rounds, and the spread of 200 in
// sequence.
func (c *config) oneByOne(plugins, env []string) error {
	first := make([][]float64, len(plugins))
	for range c.rounds {
		for i, plugin := range plugins {
			ms, err := c.connects(plugin, 1, env)
			if err != nil {
				return err
			}
			first[i] = append(first[i], ms...)
		}
	}
	for i, plugin := range plugins {
		ms, err := c.connects(plugin, 200, env)
		if err != nil {
			return err
		}
		fmt.Printf("  %-24s single connect: p50 %.2f ms, p99 %.2f ms; the first of a process %.2f ms\n",
			filepath.Base(plugin), rounds.Median(ms), ms[len(ms)*99/100], rounds.Median(first[i]))
	}
	return nil
}

// connects makes n connections in sequence between new processes, and returns their times as rig.connects does.
func (c *config) connects(plugin string, n int, env []string) ([]float64, error) {
	r, err := c.newRig(plugin, env...)
	if err != nil {
		return nil, err
	}
	defer r.close()
	return r.connects(n)
}

// crowd is many connections from one process to the other; comms and handles lie in arrays in the hosts.
type crowd struct {
	r                     *rig
	n                     int64
	handlesA, handlesB    host.Ptr
	listens, sends, recvs host.Ptr
}

func newStorm(r *rig, n int64) (*crowd, error) {
	s := &crowd{r: r, n: n}
	for _, m := range []struct {
		h    *host.Host
		p    *host.Ptr
		size int64
	}{{r.a, &s.handlesA, 128 * n}, {r.b, &s.handlesB, 128 * n}, {r.b, &s.listens, 8 * n}, {r.a, &s.sends, 8 * n}, {r.b, &s.recvs, 8 * n}} {
		var err error
		if *m.p, err = m.h.Alloc(m.size); err != nil {
			return nil, err
		}
		if err := m.h.FillByte(*m.p, m.size, 0); err != nil {
			return nil, err
		}
	}
	if err := s.listen(); err != nil {
		return nil, err
	}
	text, err := r.b.Read(s.handlesB, 128*n)
	if err != nil {
		return nil, err
	}
	return s, r.a.Write(s.handlesA, text)
}

// listen opens a rendezvous for every connection, as NCCL does.
func (s *crowd) listen() error {
	var pending []*host.Pending
	for i := range s.n {
		pending = append(pending, s.r.b.Go("service", "net.listen", host.Args{"ctx", s.r.nb.Ctx, "dev", s.r.dev, "handle", s.handlesB + host.Ptr(128*i)}))
	}
	var comms []byte
	for _, p := range pending {
		rep, err := p.Wait()
		if err != nil {
			return err
		}
		comms = binary.LittleEndian.AppendUint64(comms, uint64(rep.Ptr("comm")))
	}
	return s.r.b.Write(s.listens, comms)
}

// closeAll closes every comm of an array in a host.
func (s *crowd) closeAll(h *host.Host, cmd string, array host.Ptr) error {
	comms, err := h.Read(array, 8*s.n)
	if err != nil {
		return err
	}
	var pending []*host.Pending
	for i := range s.n {
		pending = append(pending, h.Go("service", cmd, host.Args{"comm", host.Ptr(binary.LittleEndian.Uint64(comms[8*i:]))}))
	}
	for _, p := range pending {
		_, e := p.Wait()
		err = errors.Join(err, e)
	}
	return err
}

// connect connects all, at most inflight at a time, and accepts them.
func (s *crowd) connect(inflight int64) (connected, accepted *host.Reply, err error) {
	pb := s.r.b.Go("service", "conn.accept", host.Args{"n", s.n, "listens", s.listens, "comms", s.recvs, "inflight", inflight, "limit", limit})
	pa := s.r.a.Go("service", "conn.connect", host.Args{"ctx", s.r.na.Ctx, "dev", s.r.dev, "n", s.n, "handles", s.handlesA, "comms", s.sends, "inflight", inflight, "limit", limit})
	connected, errA := pa.Wait()
	accepted, errB := pb.Wait()
	return connected, accepted, errors.Join(errA, errB)
}

func (s *crowd) close() error {
	errA := s.closeAll(s.r.a, "net.closeSend", s.sends)
	errB := s.closeAll(s.r.b, "net.closeRecv", s.recvs)
	errL := s.closeAll(s.r.b, "net.closeListen", s.listens)
	for _, m := range []struct {
		h *host.Host
		p host.Ptr
	}{{s.r.a, s.handlesA}, {s.r.b, s.handlesB}, {s.r.b, s.listens}, {s.r.a, s.sends}, {s.r.b, s.recvs}} {
		if err := m.h.Free(m.p); err != nil {
			return err
		}
	}
	return errors.Join(errA, errB, errL)
}

// stormed is what one storm gave.
type stormed struct {
	rate, bareRate float64 // connections a second
	cpu, bareCPU   float64 // us of both processes for each
	p99            float64 // ms
	held           string  // by the connecting side
}

// bareCount is how many connections bare TCP makes beside n.
func bareCount(n int64) int64 { return min(n, 1000) }

// bareStorms are repeated in a round: one takes some 30 ms, in which the scheduler decides much.
const bareStorms = 5

func storm(c *config, plugin string, n int64, env []string) (f stormed, err error) {
	r, err := c.newCrowdRig(plugin, env...)
	if err != nil {
		return f, err
	}
	defer r.close()
	before, err := r.a.Stat()
	if err != nil {
		return f, err
	}
	own := private(r.a.PID)
	s, err := newStorm(r, n)
	if err != nil {
		return f, err
	}
	begin := time.Now()
	connected, accepted, err := s.connect(n)
	if err != nil {
		return f, err
	}
	f.rate, f.cpu, f.p99 = float64(n)/time.Since(begin).Seconds(), cpuOf(connected, accepted)/float64(n), connected.Float("p99")/1e6
	after, err := r.a.Stat()
	if err != nil {
		return f, err
	}
	own = private(r.a.PID) - own
	if err := s.move(); err != nil {
		return f, err
	}
	moved, err := r.a.Stat()
	if err != nil {
		return f, err
	}
	f.held = fmt.Sprintf("connecting side: %d threads, %d fds, %.1f KiB per connection (%.1f of them private, the others shared with the kernel or the simulation), %.1f after each has moved and checked 64 bytes",
		after.Threads, after.FDs-before.FDs, float64(after.RSS-before.RSS)/float64(n)/1024, float64(own)/float64(n)/1024, float64(moved.RSS-before.RSS)/float64(n)/1024)
	if err := f.bare(r, bareCount(n)); err != nil {
		return f, err
	}
	return f, s.close()
}

// bare takes the medians of bare storms between the same processes.
func (f *stormed) bare(r *rig, n int64) error {
	var rate, cpu []float64
	for range bareStorms {
		connected, accepted, err := r.bareStorm(n)
		if err != nil {
			return err
		}
		rate = append(rate, float64(n)/connected.Float("us")*1e6)
		cpu = append(cpu, cpuOf(connected, accepted)/float64(n))
	}
	f.bareRate, f.bareCPU = rounds.Median(rate), rounds.Median(cpu)
	return nil
}

// cpuOf is the CPU time of both sides of a storm, with that of their polls: us.
func cpuOf(replies ...*host.Reply) (us float64) {
	for _, r := range replies {
		us += (r.Float("utime") + r.Float("stime")) / 1e3
	}
	return us
}

// private is what a process holds of memory that no other maps: bytes.
func private(pid int) (bytes int64) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		var kib int64
		if n, _ := fmt.Sscanf(line, "RssAnon: %d kB", &kib); n == 1 {
			bytes = kib << 10
		}
	}
	return bytes
}

// move sends and checks 64 bytes on every connection.
func (s *crowd) move() error {
	recv := s.r.b.Go("progress", "conn.move", host.Args{"role", "recv", "n", s.n, "comms", s.recvs, "size", 64, "limit", limit})
	_, errA := s.r.a.Call("progress", "conn.move", host.Args{"role", "send", "n", s.n, "comms", s.sends, "size", 64, "limit", limit})
	rep, errB := recv.Wait()
	if err := errors.Join(errA, errB); err != nil {
		return err
	}
	if bad := rep.Int("bad"); bad != 0 {
		return fmt.Errorf("%d of %d connections brought wrong bytes", bad, s.n)
	}
	return nil
}

// bareStorm makes n TCP connections between the same processes, without a plugin.
func (r *rig) bareStorm(n int64) (connected, accepted *host.Reply, err error) {
	l, err := r.b.Call("service", "plain.listen", host.Args{"addr", "127.0.0.1"})
	if err != nil {
		return nil, nil, err
	}
	accept := r.b.Go("service", "plain.storm", host.Args{"role", "accept", "n", n, "fd", l.Int("fd"), "limit", limit})
	connected, errA := r.a.Call("service", "plain.storm", host.Args{"role", "connect", "n", n, "addr", "127.0.0.1", "port", l.Int("port"), "limit", limit})
	accepted, errB := accept.Wait()
	_, errC := r.b.Call("service", "plain.close", host.Args{"fd", l.Int("fd")})
	return connected, accepted, errors.Join(errA, errB, errC)
}
