package main

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"weft/internal/perf"
)

const perfWhere = `Both ends run here, in two processes; or on two machines as perftest has it: with
--serve on the one, and with its name on the other, which sends; or as ranks of a
job: --hosts by ssh, srun, mpirun, torchrun, or --rank, --nranks and --join. Of more
than two ranks the second half sends to the first, all at once. Rank 0, or the process
that waits, prints, and says what is measured.`

func perfCommand() *cobra.Command {
	return group(&cobra.Command{
		Use:   "perf",
		Short: "measure bandwidth, latency and connects of a plugin, of all ports too",
		Long: `Measures a network plugin between processes, through the table that NCCL would
take, with perftest's columns, and checks the bytes that come.

` + perfWhere + `
Exit status 0: all bytes were right, and nothing is worse than --compare's report;
1: something was wrong, worse, or failed; 2: usage.`,
		Example: `  weft perf bw                         two processes of this machine
  weft perf bw --serve                 wait here for one
  weft perf bw node1                   send there
  weft perf bw --vs ./libnccl-net-other.so
  srun -N 8 weft perf matrix --html matrix.html`,
	},
		perfTest(perf.Bandwidth, "bw", "bandwidth one way", ""),
		perfTest(perf.BothWays, "bibw", "bandwidth both ways at once", "\nA process sends and receives at once, on a thread for each."),
		perfTest(perf.Latency, "lat", "latency: half the time of a message there and one back", ""),
		perfTest(perf.Connects, "conns", "connections made at once", "\nEach is connected, moves 64 checked bytes, and is closed; in each round anew."),
		perfTest(perf.CPU, "cpu", "CPU time of messages", "\nIt is that of the whole process, with threads of the plugin: NCCL polls, and so does\nthis, so that a process that waits costs as much as one that works."),
		perfMatrix(),
	)
}

// perfFlags are what a test is asked for.
type perfFlags struct {
	placing
	perf.Options
	plugin, vs      string
	serve           bool
	sizes, size     string
	all             bool
	json, csv       bool
	gbits, noCheck  bool
	verbose, bothAs bool
	compare         string
	tolerance       float64
	level           int
	html            string
	ports           string
}

func perfTest(t perf.Test, name, short, more string) *cobra.Command {
	o := &perfFlags{}
	c := &cobra.Command{
		Use:     name + " [flags] [HOST[:PORT]]",
		Short:   short,
		Long:    fmt.Sprintf("Measures %s.\n\n%s%s", short, perfWhere, more),
		Example: fmt.Sprintf("  weft perf %[1]s\n  weft perf %[1]s --serve\n  weft perf %[1]s node1\n  weft perf %[1]s --vs ./libnccl-net-other.so --rounds 9\n  mpirun -n 8 weft perf %[1]s\n  weft perf %[1]s --json >now.json; weft perf %[1]s --compare now.json", name),
		Args:    cobra.MaximumNArgs(1),
	}
	o.Test = t
	f := c.Flags()
	f.BoolVar(&o.serve, "serve", false, "wait for the other process at HOST:PORT, by itself all addresses and port "+perfPort)
	if t != perf.Connects {
		f.StringVarP(&o.size, "size", "s", "", "`bytes` of a message, such as 64K (default: some from 8 B to 64 MiB)")
		f.StringVar(&o.sizes, "sizes", "", "several `sizes`, such as 8,64K,4M")
		f.BoolVarP(&o.all, "all", "a", false, "all powers of two from 8 B to 64 MiB")
		f.Int64VarP(&o.Iters, "iters", "n", 0, "`messages` of a round (default: as many as take --duration)")
		durationVar(f, &o.Duration, "duration", 500*time.Millisecond, "of a round")
		f.Lookup("duration").Shorthand = "D"
	} else {
		f.IntVarP(&o.Conns, "conns", "n", 1000, "`connections` made at once")
	}
	if t == perf.Bandwidth {
		f.BoolVarP(&o.bothAs, "bidirectional", "b", false, "both ways at once, as weft perf bibw")
	}
	if t == perf.Bandwidth || t == perf.BothWays || t == perf.CPU {
		f.IntVarP(&o.Window, "tx-depth", "t", 8, "`messages` under way at once; NCCL has up to 8 a channel")
	}
	o.flags(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		if o.bothAs {
			o.Test = perf.BothWays
		}
		return o.start(c, args, o.Test)
	}
	return c
}

func perfMatrix() *cobra.Command {
	o := &perfFlags{}
	c := &cobra.Command{
		Use:   "matrix [flags]",
		Short: "bandwidth and latency of every pair of ports",
		Long: `Measures bandwidth and latency from every port to every port of another rank, both
ways, and says which ports and which pairs fall behind the others. A rank for each
machine; a machine is in one pair at a time, other pairs are measured meanwhile.`,
		Example: `  srun -N 8 weft perf matrix
  mpirun -n 4 --map-by node weft perf matrix --ports all --html matrix.html
  weft perf matrix --nranks 3`,
		Args: cobra.NoArgs,
	}
	o.Matrix = true
	f := c.Flags()
	f.StringVar(&o.ports, "ports", "same", "which ports of two ranks are paired: `same`, those of one number, or all")
	f.StringVar(&o.html, "html", "", "write it to this `file`, which ends in .html, as a page with heat maps; .svg: the map of bandwidths alone")
	f.StringVar(&o.size, "size", "4M", "`bytes` of a message whose bandwidth is measured; latency is of 8")
	durationVar(f, &o.Duration, "duration", 200*time.Millisecond, "of a round")
	f.IntVarP(&o.Window, "tx-depth", "t", 8, "`messages` under way at once")
	oneOf(c, "ports", "same", "all")
	o.flags(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		if o.ports != "same" && o.ports != "all" {
			return fmt.Errorf("--ports %s: want same or all", o.ports)
		}
		if ext := filepath.Ext(o.html); o.html != "" && ext != ".html" && ext != ".svg" {
			return fmt.Errorf("--html %s: end it in .html or .svg", o.html)
		}
		o.AllPorts = o.ports == "all"
		return o.start(c, args, perf.Bandwidth, perf.Latency)
	}
	return c
}

// flags are those of all tests.
func (o *perfFlags) flags(c *cobra.Command) {
	f := c.Flags()
	f.IntVar(&o.Rounds, "rounds", 0, "rounds whose median is told (default: 3; 9 with --vs)")
	f.StringVarP(&o.Device, "device", "d", "", "`name` or number of the device (default: the first)")
	f.Lookup("device").Usage += map[bool]string{true: "; not for a matrix, which is of all"}[o.Matrix]
	f.StringVar(&o.plugin, "plugin", "", "the `library` to measure (default: ../lib/libnccl-net-weft.so beside this program)")
	f.StringVar(&o.vs, "vs", "", "another `library`, measured in turn with it: ratios are told")
	f.IntVar(&o.Abi, "abi", 0, "`number` of the table (default: the newest of each library)")
	f.StringVar(&o.Host, "host", "", "the weft-host `program` (default: beside this one)")
	f.BoolVar(&o.gbits, "report_gbits", false, "bandwidths in Gb/sec instead of MB/sec of 2^20 bytes")
	f.BoolVar(&o.noCheck, "no-check", false, "do not look at any bytes; else some are looked at before each size")
	f.BoolVar(&o.json, "json", false, "write a JSON document")
	f.BoolVar(&o.csv, "csv", false, "write comma-separated values")
	f.StringVar(&o.compare, "compare", "", "an older `report` of --json, to compare with")
	f.Float64Var(&o.tolerance, "tolerance", 0.1, "`share` by which a figure may be worse than --compare's")
	o.placing.flags(f, 2)
	durationVar(f, &o.Limit, "timeout", time.Minute, "limit of each step")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "print what the plugin logs, as NCCL_DEBUG=INFO does; without either its warnings")
}

// perfPort is where --serve waits: perftest's.
const perfPort = "18515"
