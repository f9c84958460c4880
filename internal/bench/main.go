// Command bench measures the built library beside its yardsticks in the same run: the host's plain TCP loop, on simulated verbs
// the verbs calls alone, and, if given, another plugin.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"weft/internal/beat"
	"weft/internal/link"
)

// config is what the user asked for.
type config struct {
	dist, vs, iface string
	nets            string // folder of NCCL's own networks, as make nccl-nets builds them
	bothEnds        string // the program that holds both ends of a connection
	events          string // the program that calls the profiler
	mpi             string // the program that times Open MPI's all-reduce; there is none without Open MPI
	rounds          int
	root            string
}

// chapter is one group of figures.
type chapter struct {
	name  string
	about string
	run   func(*config) error
}

var chapters = []chapter{
	{"library", "its size, time to load and to initialise, regeneration", weight},
	{"bw", "one-way bandwidth of one connection", bandwidth},
	{"sizes", "one connection at every size and at several windows, buffers of their own, nobody pinned", everySize},
	{"alltoall", "a step of an all-to-all over many connections, all and two of them moving, nobody pinned", allToAll},
	{"lat", "8-byte ping-pong: hot, after 1 ms idle, with all cores busy", latency},
	{"test", "CPU of an idle and of a done test", tests},
	{"message", "simulated verbs: CPU and instructions per message, both ends on one thread", messages},
	{"rdmasizes", "one connection on simulated verbs, as in sizes", rdmaSizes},
	{"rdmaalltoall", "the same on simulated verbs, as in alltoall", rdmaAllToAll},
	{"rdma", "simulated verbs: messages per second and ping-pong, a core each side", overRDMA},
	{"conns", "connects, and what connections cost", connections},
	{"rdmaconns", "the same on simulated verbs", rdmaConnections},
	{"striping", "simulated verbs: a device made of two, of which one is slower, beside each of them alone", striping},
	{"tcpstriping", "the same on TCP, over shaped cables between network namespaces", tcpStriping},
	{"coll", "all-reduces of collNet beside a ring over the net table, over TCP and simulated verbs, and beside Open MPI where there is one", collectives},
	{"lazy", "simulated verbs: connects with 16 QPs each, made at once or later", lazyLanes},
	{"reuse", "simulated verbs: connections with 16 QPs each, closed and connected again", reuse},
}

// ofProfile are the chapters of make bench-profile: what it costs to record, to count and to watch.
var ofProfile = []chapter{
	{"event", "what a call of NCCL's profiler takes, with 1 and with 8 threads", events},
	{"eventrate", "what 100,000 events per second, each begun and ended, take of a core", eventsRate},
	{"profilecpu", "CPU and instructions per message with WEFT_PROFILE, both ends on one thread", modesCPU},
	{"profilebw", "bandwidth and CPU between two processes with WEFT_PROFILE", modesBandwidth},
	{"profilenccl", "the same under the real NCCL: all-reduce of two ranks over TCP", modesUnderNCCL},
}

func namesOf(list []chapter) string {
	var names []string
	for _, ch := range list {
		names = append(names, ch.name)
	}
	return strings.Join(names, ",")
}

func main() {
	c := &config{}
	only := flag.String("only", namesOf(chapters), "chapters to run; profile: "+namesOf(ofProfile))
	flag.StringVar(&c.dist, "dist", "dist", "folder that make filled")
	flag.StringVar(&c.bothEnds, "both", ".cache/bench/both", "the program built from internal/bench/both")
	flag.StringVar(&c.events, "events", ".cache/bench/events", "the program built from internal/bench/events")
	flag.StringVar(&c.mpi, "mpi", ".cache/bench/mpi", "the program built from internal/bench/mpi, which is there where Open MPI is")
	flag.StringVar(&c.vs, "vs", "", "another plugin to measure alternately")
	flag.StringVar(&c.nets, "nets", "", "folder with libnccl-net-socket.so and libnccl-net-ib.so, NCCL's own networks, to measure alternately")
	flag.StringVar(&c.iface, "iface", "lo", "network interface (NCCL_SOCKET_IFNAME)")
	flag.IntVar(&c.rounds, "n", 5, "rounds; medians are shown")
	flag.Parse()
	if *only == "profile" {
		*only = namesOf(ofProfile)
	}
	if err := c.run(strings.Split(*only, ",")); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func (c *config) run(only []string) error {
	var err error
	if c.root, err = os.Getwd(); err != nil {
		return err
	}
	for _, p := range []*string{&c.dist, &c.vs, &c.nets, &c.bothEnds, &c.events, &c.mpi} {
		if *p != "" {
			if *p, err = filepath.Abs(*p); err != nil {
				return err
			}
		}
	}
	all := slices.Concat(chapters, ofProfile)
	for _, name := range only {
		i := slices.IndexFunc(all, func(ch chapter) bool { return ch.name == name })
		if i < 0 {
			return fmt.Errorf("-only %s: no such chapter", name)
		}
		fmt.Printf("\n%s: %s\n", all[i].name, all[i].about)
		alive := beat.Start(func(since time.Duration) { fmt.Fprintf(os.Stderr, "... %s, %v\n", name, since) })
		err := all[i].run(c)
		alive.Stop()
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func (c *config) library() string { return link.Dist(c.dist).Library() }

// plugins are the library and what it is measured beside over TCP; rdmaPlugins over simulated verbs.
func (c *config) plugins() []string     { return c.beside("libnccl-net-socket.so") }
func (c *config) rdmaPlugins() []string { return c.beside("libnccl-net-ib.so") }

func (c *config) beside(own string) []string {
	list := []string{c.library()}
	if c.vs != "" {
		list = append(list, c.vs)
	}
	if c.nets != "" {
		list = append(list, filepath.Join(c.nets, own))
	}
	return list
}

func (c *config) host() string { return link.Dist(c.dist).Program("weft-host") }
