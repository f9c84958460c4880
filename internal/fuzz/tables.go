package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"weft/internal/host"
	"weft/internal/simverbs"
)

// tables are the versions whose calls differ most: blocking connects and no groups; groups; contexts and wide sizes.
var tables = []int{oldest, host.SinceWideRegMr, newest}

var oldest, newest = host.FamilyNet.Versions()

// programs are what table calls are fuzzed with, in a folder of their own.
type programs struct {
	lib, host, sim string // sim: the folder of the simulated libibverbs
	scratch        string // for logs
}

// round is one host process with one sequence of calls, both drawn from the seed.
type round struct {
	seed  uint64
	calls int
}

func (r round) version() int { return tables[r.seed%uint64(len(tables))] }

// rdma says whether the process finds simulated devices.
func (r round) rdma() bool { return r.seed/uint64(len(tables))%2 == 1 }

func (r round) String() string {
	over := "TCP"
	if r.rdma() {
		over = "simulated RDMA"
	}
	return fmt.Sprintf("seed %d (table v%d over %s)", r.seed, r.version(), over)
}

// counts are what rounds have done.
type counts struct {
	rounds, calls, refused, accepted, messages, bytes, opened int64
	fds, threads                                              int // the most at the end of a round
	rss                                                       int64
}

func (c counts) String() string {
	return fmt.Sprintf("%d rounds, %d table calls (%d wrong ones refused, %d harmless), %d messages right, %d connections; a process held at most %d descriptors, %d threads, %d MiB",
		c.rounds, c.calls, c.refused, c.accepted, c.messages, c.opened, c.fds, c.threads, c.rss>>20)
}

func (c *counts) add(r *host.Reply, s host.Stat) {
	c.rounds++
	for key, n := range map[string]*int64{"calls": &c.calls, "refused": &c.refused, "accepted": &c.accepted, "messages": &c.messages, "bytes": &c.bytes, "opened": &c.opened} {
		*n += r.Int(key)
	}
	c.fds, c.threads, c.rss = max(c.fds, s.FDs), max(c.threads, s.Threads), max(c.rss, s.RSS)
}

// patience bounds one round; a machine under load is slow, a call that hangs is not.
const patience = 10 * time.Minute

// run plays one round. The error says how to play it again, and ends with the last calls.
func (p programs) run(r round, total *counts) (err error) {
	log := filepath.Join(p.scratch, fmt.Sprintf("calls-%d-%d", os.Getpid(), r.seed))
	defer os.Remove(log)
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s: %w\nthe last calls:\n%s", r, err, lastLines(log, 40))
		}
	}()
	// Limits so long that a slow machine is not taken for a dead peer; a blocking connect to nobody waits one of them out.
	env := []string{"WEFT_TIMEOUT=60", "WEFT_CONNECT_TIMEOUT=20", "NCCL_SOCKET_IFNAME=lo", "ASAN_OPTIONS=detect_leaks=0:abort_on_error=1"}
	if r.rdma() {
		w := simverbs.World{Name: fmt.Sprintf("fuzz-%d-%d", os.Getpid(), r.seed), Devices: []simverbs.Device{
			{Name: "sim0", GIDs: []string{"10.101.0.1/24"}}, {Name: "sim1", GIDs: []string{"10.101.0.2/24"}}}}
		more, err := w.Env(p.sim, "")
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, w.Remove()) }()
		env = append(env, more...)
	}
	h, err := host.Start(host.Options{Bin: p.host, Env: env, Deadline: patience})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	lib, err := h.Load(p.lib)
	if err != nil {
		return err
	}
	net, err := lib.BindNet(r.version())
	if err != nil {
		return err
	}
	if err := net.Init(); err != nil {
		return err
	}
	reply, err := h.Call("progress", "fuzz", host.Args{"seed", r.seed, "calls", r.calls, "ctx", net.Ctx, "log", log, "limit", patience / 2})
	if err != nil {
		return err
	}
	stat, err := h.Stat()
	if err != nil {
		return err
	}
	total.add(reply, stat)
	return net.Finalize()
}

// lastLines of the ring of calls that the host keeps in a file; its newest line ends at the zero byte.
func lastLines(path string, n int) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	head, tail, _ := strings.Cut(string(b), "\x00")
	lines := strings.Split(strings.TrimRight(strings.Trim(tail, "\x00")+head, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
