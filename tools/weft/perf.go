package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"weft/internal/host"
	"weft/internal/launch"
	"weft/internal/perf"
	"weft/internal/ranks"
)

const perfWhere = `Both ends run here, in two processes; or on two machines as perftest has it: with
--serve on the one, and with its name on the other, which sends; or as ranks of a
job: --hosts by ssh, srun, mpirun, torchrun, or --rank, --nranks and --join. Of more than two
ranks the second half sends to the first, all at once.`

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

// sizesOf are those that flags name.
func (o *perfFlags) sizesOf() ([]int64, error) {
	if o.Test == perf.Connects {
		return nil, nil
	}
	text := "8,64,512,4K,32K,256K,1M,4M,16M,64M"
	given := 0
	for _, g := range []bool{o.size != "", o.sizes != "", o.all} {
		if g {
			given++
		}
	}
	switch {
	case given > 1:
		return nil, errors.New("--size, --sizes and --all choose the sizes: give one")
	case o.size != "":
		text = o.size
	case o.sizes != "":
		text = o.sizes
	case o.all:
		var all []int64
		for n := int64(8); n <= 64<<20; n *= 2 {
			all = append(all, n)
		}
		return all, nil
	}
	var all []int64
	for _, word := range strings.Split(text, ",") {
		n, err := parseBytes(word)
		if err != nil {
			return nil, err
		}
		all = append(all, n)
	}
	return all, nil
}

// check finds what does not fit together, and fills in what was left out.
func (o *perfFlags) check(c *cobra.Command, args []string) (err error) {
	if o.Sizes, err = o.sizesOf(); err != nil {
		return err
	}
	switch {
	case o.Rounds < 0 || o.Iters < 0 || o.Limit <= 0 || o.Test != perf.Connects && o.Duration <= 0:
		return errors.New("rounds, messages and times are positive")
	case o.Test != perf.Connects && o.Test != perf.Latency && (o.Window < 1 || o.Window > maxPerfWindow):
		return fmt.Errorf("--tx-depth %d: want 1 to %d", o.Window, maxPerfWindow)
	case o.Test == perf.Connects && o.Conns < 1:
		return fmt.Errorf("--conns %d: want at least 1", o.Conns)
	case o.json && o.csv:
		return errors.New("--json and --csv both choose the form: give one")
	case o.tolerance <= 0 || o.tolerance >= 1:
		return fmt.Errorf("--tolerance %g: want a share between 0 and 1", o.tolerance)
	case o.Matrix && o.compare != "":
		return errors.New("--compare is for the other tests")
	}
	if o.Rounds == 0 {
		o.Rounds = 3
		if o.vs != "" {
			o.Rounds = 9
		}
	}
	o.Check = !o.noCheck
	if err := o.findEnds(c, args); err != nil {
		return err
	}
	if o.level, err = logLevel(os.Getenv("NCCL_DEBUG"), o.verbose); err != nil {
		return err
	}
	if o.plugin, err = pluginAt("--plugin", o.plugin); err != nil {
		return err
	}
	o.Plugins = []string{o.plugin}
	if o.vs != "" {
		if o.vs, err = pluginAt("--vs", o.vs); err != nil {
			return err
		}
		o.Plugins = append(o.Plugins, o.vs)
	}
	if o.Host == "" {
		o.Host, err = ownHost()
	}
	return err
}

// maxPerfWindow is the host's.
const maxPerfWindow = 256

// findEnds decides which ranks run here.
func (o *perfFlags) findEnds(c *cobra.Command, args []string) error {
	to := ""
	if len(args) > 0 {
		to = args[0]
	}
	if to == "" && !o.serve {
		if err := o.find(c.Flags().Changed); err != nil {
			return err
		}
		if o.nranks < 2 || o.nranks > 4096 {
			return fmt.Errorf("--nranks %d: want 2 to 4096", o.nranks)
		}
		if !o.Matrix && o.nranks%2 != 0 {
			return fmt.Errorf("%d ranks: half of them send to the other half, so there are 2, 4, 6 ... of them", o.nranks)
		}
		return nil
	}
	for _, name := range []string{"rank", "nranks", "join", "local"} {
		if c.Flags().Changed(name) {
			return fmt.Errorf("--%s is for ranks of a job, and --serve and HOST are for two processes: give one", name)
		}
	}
	if _, _, err := net.SplitHostPort(to); err != nil {
		to = net.JoinHostPort(strings.Trim(to, "[]"), perfPort)
	}
	o.rank, o.nranks = 1, 2
	if o.serve {
		o.rank = 0
	}
	if o.token == "" {
		o.token = os.Getenv("WEFT_RUN_TOKEN")
	}
	o.join = to
	o.place = &launch.Place{Rank: o.rank, Size: 2, Addrs: []string{to}}
	return nil
}

// start runs tests one after the other between the same ranks, and tells rank 0's reports.
func (o *perfFlags) start(c *cobra.Command, args []string, tests ...perf.Test) error {
	var old *perf.Report
	ctx := c.Context()
	if o.hosts.leash {
		var err error
		if ctx, err = o.hosts.leashed(ctx, c.InOrStdin()); err != nil {
			return err
		}
	}
	if len(o.hosts.list) > 0 {
		if len(args) > 0 || o.serve {
			return errors.New("--hosts, --serve and HOST all say where the ends are: give one")
		}
		return o.hosts.overSSH(c)
	}
	if err := o.check(c, args); err != nil {
		return fmt.Errorf("%w (%s -h explains)", err, c.CommandPath())
	}
	if o.compare != "" {
		f, err := os.Open(o.compare)
		if err != nil {
			return fmt.Errorf("--compare: %w", err)
		}
		old, err = perf.Read(f)
		f.Close()
		if err != nil {
			return fmt.Errorf("--compare %s: %w", o.compare, err)
		}
	}
	out := newProgress(c.ErrOrStderr())
	defer out.stop()
	o.Log = func(rank int, l host.LogLine) {
		if l.Level <= o.level {
			out.plugin(rank, l)
		}
	}
	ctx, stop := stoppable(ctx, out.Note)
	defer stop()
	reports, err := o.measure(ctx, out, tests)
	if err != nil {
		return failure{err}
	}
	out.stop()
	if reports == nil {
		return nil // rank 0 tells
	}
	return o.tell(c.OutOrStdout(), reports, old)
}

// measure returns nil where rank 0 is another process.
func (o *perfFlags) measure(ctx context.Context, out *progress, tests []perf.Test) ([]*perf.Report, error) {
	busy := func(what string) {
		out.mu.Lock()
		defer out.mu.Unlock()
		out.begins(what, what)
	}
	one := func(g ranks.Group) (reports []*perf.Report, err error) {
		for _, t := range tests {
			p := o.Options
			p.Test = t
			if o.Matrix && t == perf.Latency {
				p.Sizes = []int64{8}
			}
			r, err := perf.Run(g, p, busy)
			if err != nil {
				return nil, err
			}
			reports = append(reports, r)
		}
		return reports, nil
	}
	if o.place == nil {
		return o.measureHere(ctx, one)
	}
	limit := o.Limit
	if o.serve {
		limit = max(limit, 10*time.Minute) // somebody goes to the other machine
	}
	g, err := o.meet(ctx, limit, out.Note)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { g.Abort(context.Cause(ctx)) })
	defer stop()
	reports, err := one(g)
	if err != nil {
		g.Abort(err)
		text, told := g.Verdict()
		if told && o.rank > 0 && o.place.Launcher != "" {
			return nil, status(1) // rank 0 says it for all, on the same terminal
		}
		return nil, errors.New(text)
	}
	g.Leave()
	if o.rank > 0 {
		return nil, nil
	}
	return reports, nil
}

// measureHere runs every rank in this process.
func (o *perfFlags) measureHere(ctx context.Context, one func(g ranks.Group) ([]*perf.Report, error)) ([]*perf.Report, error) {
	groups := ranks.Local(o.nranks, o.Limit+time.Duration(o.Rounds)*o.Duration)
	stop := context.AfterFunc(ctx, func() { groups[0].Abort(context.Cause(ctx)) })
	defer stop()
	errs, all := make([]error, o.nranks), make([][]*perf.Report, o.nranks)
	var wg sync.WaitGroup
	for i, g := range groups {
		wg.Go(func() { all[i], errs[i] = one(g) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		text, _ := groups[0].Verdict()
		return nil, errors.New(text)
	}
	return all[0], nil
}

// tell prints, and compares with an older report.
func (o *perfFlags) tell(w io.Writer, reports []*perf.Report, old *perf.Report) error {
	with := 0
	for i, r := range reports {
		if old != nil {
			if err := r.Compare(old, o.tolerance); err != nil {
				return fmt.Errorf("--compare %s: %w", o.compare, err)
			}
		}
		if r.Wrong() > 0 || len(r.Worse) > 0 {
			with = 1
		}
		var err error
		switch {
		case o.json: // all of them are one document
		case o.csv:
			err = r.CSV(w, i == 0)
		default:
			if i > 0 {
				fmt.Fprintln(w)
			}
			err = r.Text(w, perf.Style{Gbits: o.gbits})
		}
		if err != nil {
			return failure{err}
		}
	}
	if o.json {
		if err := encode(w, perf.Document{Schema: perf.Schema, Reports: reports}); err != nil {
			return failure{err}
		}
	}
	if o.html != "" {
		write := perf.WritePage
		if filepath.Ext(o.html) == ".svg" {
			write = perf.WriteMap
		}
		if err := writeWhole(o.html, func(w io.Writer) error { return write(w, reports) }); err != nil {
			return failure{err}
		}
	}
	return ended(with)
}
