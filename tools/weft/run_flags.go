package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"weft/headers"
	"weft/headers/facts"
	"weft/internal/launch"
	"weft/internal/ranks"
)

const runUsage = `usage: weft run [flags]

Connects ranks in a ring through a network plugin, each rank a process that loads
the plugin as NCCL does, and all-reduces float32 over it; the reduction happens in
the host, every element of every iteration is checked. With --input a file's bytes
go around the ring instead, and every rank's checksum is compared. At the end
rank 0 says what each link between two ranks went over.

With --coll the plugin's collNet performs a whole collective of all ranks, as NCCL
has it do where a network can: every type and operation, out of place and in place,
with nccl-tests' columns. Results are compared with exact ones, and each rank's bits
with all others'. Weft offers a collNet with WEFT_COLLNET=1. The tables have no
broadcast: --coll broadcast is an all-gather of the root's part alone (v8 and later).

All ranks run here, or one of them with --rank, --nranks and --join, or as srun,
mpirun (Open MPI, MPICH) or torchrun has started it: what they set in the
environment is taken, and exit status 2 if only half of it is there. MASTER_ADDR
and MASTER_PORT name another meeting place than the launcher's. --local ignores
it all.
Exit status 0: all data was right; 1: it was not, or a rank failed; 2: usage.

examples:
  weft run                                   3 ranks, the newest table, 8 B to 64 MiB
  weft run --abi all --sizes 8,64K,4M        every table that the plugin exports
  weft run --nccl 2.12.12 --input photo.jpg  the table that NCCL 2.12.12 would take
  weft run --device mlx5_0+mlx5_1            one device made of two, as NCCL merges NICs
  weft run --require rdma                    fail if a link goes over TCP
  weft run -b 8 -e 128M -f 2 -n 20 -w 5      as nccl-tests
  weft run --coll allreduce --type all --op all -b 8 -e 1M -f 8
  weft run --rank 1 --nranks 4 --join 10.0.0.1:29500
  srun -N 4 weft run                         a rank on each of four nodes
  mpirun -n 4 weft run                       four ranks, of Open MPI or MPICH

flags:
`

type runOptions struct {
	host, plugin, device string
	abi, nccl            string
	sizes                []int64
	iters, warm          int
	input                string
	bytes                int64
	rank, nranks         int
	join, token          string
	require              string
	place                *launch.Place // among the processes of a job; nil: every rank runs here
	alone                string        // the launcher that started this process and no other
	timeout              time.Duration
	json, verbose, flush bool
	coll                 *ranks.Collectives // nil: a ring over net
	level                int                // the last of NCCL's log levels that is printed
}

// shortFlags are nccl-tests' names for ours.
var shortFlags = map[string]string{"b": "min", "e": "max", "f": "factor", "n": "iters", "w": "warmup", "d": "type", "o": "op", "r": "root"}

// parseRun returns nil and an exit status when there is nothing to run.
func parseRun(args []string, stdout, stderr io.Writer) (*runOptions, int) {
	o := &runOptions{}
	f := flag.NewFlagSet("run", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.Usage = func() {}
	f.StringVar(&o.plugin, "plugin", "", "the `library` to run through (default: ../lib/libnccl-net-weft.so beside this program)")
	f.StringVar(&o.host, "host", "", "the weft-host `program` (default: beside this one)")
	f.StringVar(&o.device, "device", "", "`name` or number of the device, or several joined by + to make one of them (default: the first)")
	f.StringVar(&o.abi, "abi", "newest", "tables: a number, a list such as 4,12, all, old (all but the newest) or newest")
	f.StringVar(&o.nccl, "nccl", "", "the table that this `release` of NCCL takes, such as 2.12.12")
	smallest := f.String("min", "8", "smallest `size` in bytes (K, M, G: powers of 1024)")
	largest := f.String("max", "64M", "largest `size`")
	factor := f.Int("factor", 2, "from one size to the next")
	sizes := f.String("sizes", "", "sizes instead, such as 8,64K,4M")
	f.IntVar(&o.iters, "iters", 0, "iterations of each size (default: 4 to 20, fewer for large sizes)")
	f.IntVar(&o.warm, "warmup", 1, "iterations before those that are timed")
	f.StringVar(smallest, "b", *smallest, "as --min, by nccl-tests' name")
	f.StringVar(largest, "e", *largest, "as --max")
	f.IntVar(factor, "f", *factor, "as --factor")
	f.IntVar(&o.iters, "n", 0, "as --iters")
	f.IntVar(&o.warm, "w", 1, "as --warmup")
	var c collFlags
	f.IntVar(&c.checks, "c", 1, "as in nccl-tests: `n` checked iterations of --coll, none with 0; a ring's are all checked whatever it is")
	f.StringVar(&c.kind, "coll", "", "have the plugin's collNet perform this `collective`: allreduce, allgather, reducescatter or broadcast")
	f.StringVar(&c.types, "type", "float", "`types` of --coll's elements: some of int8, uint8, int32, uint32, int64, uint64, half, float, double, bfloat16, f8e4m3, f8e5m2, or all")
	f.StringVar(&c.ops, "op", "sum", "`operations` of --coll: some of sum, prod, max, min, or all")
	f.IntVar(&c.root, "root", 0, "`rank` whose buffer --coll broadcast gives to all")
	f.StringVar(&c.piece, "piece", "", "hand a collective over in operations of at most this `size`, as NCCL does with its chunks (default: as large as the plugin takes)")
	f.IntVar(&c.window, "window", 8, "`number` of such operations under way")
	f.StringVar(&c.types, "d", "float", "as --type, by nccl-tests' name")
	f.StringVar(&c.ops, "o", "sum", "as --op")
	f.IntVar(&c.root, "r", 0, "as --root")
	f.StringVar(&o.input, "input", "", "broadcast this `file` from rank 0 instead")
	f.IntVar(&o.nranks, "nranks", 3, "number of ranks")
	f.IntVar(&o.rank, "rank", -1, "run only this rank (needs --join)")
	f.StringVar(&o.join, "join", "", "`host:port` of rank 0, where the ranks of several machines meet")
	f.StringVar(&o.token, "token", os.Getenv("WEFT_RUN_TOKEN"), "secret that the ranks of a --join share (WEFT_RUN_TOKEN)")
	f.StringVar(&o.require, "require", "", "`rdma`: fail where a link between ranks goes over anything else (WEFT_REQUIRE=rdma for every rank; rank 0's counts)")
	local := f.Bool("local", false, "run all ranks here, whatever a launcher has set")
	durationVar(f, &o.timeout, "timeout", 2*time.Minute, "limit of each step")
	f.BoolVar(&o.json, "json", false, "write one JSON document instead of the table")
	f.BoolVar(&o.flush, "flush", false, "first receive groups of many sizes, each flushed as NCCL flushes a GPU's memory (host memory: with WEFT_FLUSH=always)")
	f.BoolVar(&o.verbose, "v", false, "print what the plugin logs, as NCCL_DEBUG=INFO does; without either its warnings")
	if err := f.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			f.SetOutput(stdout)
			fmt.Fprint(stdout, runUsage)
			f.PrintDefaults()
			return nil, 0
		}
		fmt.Fprintln(stderr, "weft run -h explains the flags")
		return nil, 2
	}
	given := map[string]bool{}
	f.Visit(func(fl *flag.Flag) {
		if long, short := shortFlags[fl.Name]; short {
			given[long] = true
			return
		}
		given[fl.Name] = true
	})
	if c.checks < 0 {
		fmt.Fprintf(stderr, "weft run: -c %d: want 0 or more\n", c.checks)
		return nil, 2
	}
	err := o.check(f, given, *smallest, *largest, *factor, *sizes, *local)
	if err == nil {
		o.coll, err = c.options(given, o.nranks)
	}
	if err != nil {
		fmt.Fprintf(stderr, "weft run: %v (weft run -h explains)\n", err)
		return nil, 2
	}
	return o, 0
}

func (o *runOptions) check(f *flag.FlagSet, given map[string]bool, smallest, largest string, factor int, sizes string, local bool) error {
	if f.NArg() > 0 {
		return fmt.Errorf("what is %q? Only flags are expected", f.Arg(0))
	}
	var err error
	if o.level, err = logLevel(os.Getenv("NCCL_DEBUG"), o.verbose); err != nil {
		return err
	}
	if given["abi"] && given["nccl"] {
		return errors.New("--abi and --nccl both choose the table: give one")
	}
	if o.iters < 0 {
		return fmt.Errorf("--iters %d: want at least 1", o.iters)
	}
	if o.warm < 0 {
		return fmt.Errorf("--warmup %d: want 0 or more", o.warm)
	}
	if o.timeout <= 0 {
		return fmt.Errorf("--timeout %v: want a positive time", o.timeout)
	}
	if o.require != "" && o.require != ranks.RequireRDMA {
		return fmt.Errorf("--require %s: want %s", o.require, ranks.RequireRDMA)
	}
	if err := o.findPlace(given, local); err != nil {
		return err
	}
	if o.nranks < 2 || o.nranks > 4096 {
		return fmt.Errorf("--nranks %d: a ring has 2 to 4096 ranks", o.nranks)
	}
	if o.sizes, err = sizeList(given, smallest, largest, factor, sizes, o.input != ""); err != nil {
		return err
	}
	if o.plugin == "" {
		if o.plugin, err = ownLibrary(); err != nil {
			return err
		}
	} else if strings.Contains(o.plugin, "/") || exists(o.plugin) {
		if o.plugin, err = filepath.Abs(o.plugin); err != nil {
			return err
		}
		if !exists(o.plugin) {
			return fmt.Errorf("--plugin %s: no such file", o.plugin)
		}
	}
	if o.host == "" {
		if o.host, err = ownHost(); err != nil {
			return err
		}
	}
	return nil
}

func sizeList(given map[string]bool, smallest, largest string, factor int, sizes string, input bool) ([]int64, error) {
	if sizes != "" {
		if given["min"] || given["max"] || given["factor"] {
			return nil, errors.New("--sizes and --min, --max, --factor both choose the sizes: give one")
		}
		var list []int64
		for _, s := range strings.Split(sizes, ",") {
			n, err := parseSize(s)
			if err != nil {
				return nil, fmt.Errorf("--sizes: %w", err)
			}
			list = append(list, n)
		}
		return list, nil
	}
	if input && !given["min"] && !given["max"] {
		return nil, nil // the file alone
	}
	from, err := parseSize(smallest)
	if err != nil {
		return nil, fmt.Errorf("--min: %w", err)
	}
	to, err := parseSize(largest)
	if err != nil {
		return nil, fmt.Errorf("--max: %w", err)
	}
	if from > to {
		return nil, fmt.Errorf("--min %s is larger than --max %s", smallest, largest)
	}
	if factor < 2 {
		return nil, fmt.Errorf("--factor %d: want at least 2", factor)
	}
	var list []int64
	for n := from; n <= to; n *= int64(factor) {
		list = append(list, n)
	}
	return list, nil
}

// parseSize reads 8, 64K, 4M or 1G, in bytes: whole float32s, at most 4 GiB.
func parseSize(s string) (int64, error) {
	text, shift := strings.ToUpper(strings.TrimSpace(s)), 0
	for i, unit := range []string{"K", "M", "G"} {
		if t := strings.TrimSuffix(strings.TrimSuffix(text, "IB"), "B"); strings.HasSuffix(t, unit) {
			text, shift = strings.TrimSuffix(t, unit), 10*(i+1)
			break
		}
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is no size: want bytes, or a number with K, M or G", s)
	}
	if n <= 0 || n > 4<<30>>shift {
		return 0, fmt.Errorf("%s: want 4 bytes to 4G", s)
	}
	if n <<= shift; n%4 != 0 {
		return 0, fmt.Errorf("%s: a float32 has 4 bytes, so sizes are multiples of 4", s)
	}
	return n, nil
}

// pick chooses among the tables that the plugin has, newest first.
func (o *runOptions) pick(have []int) ([]int, error) {
	if o.nccl != "" {
		r, err := release(o.nccl)
		if err != nil {
			return nil, err
		}
		for _, v := range o.lookedFor(r) {
			if slices.Contains(have, v) {
				return []int{v}, nil
			}
		}
		return nil, fmt.Errorf("NCCL %s looks for %s tables %v; the plugin has %v", r.Release, o.family(), o.lookedFor(r), have)
	}
	switch o.abi {
	case "newest":
		return have[:1], nil
	case "all", "old":
		old := slices.Sorted(slices.Values(have))
		if o.abi == "old" {
			old = old[:len(old)-1]
		}
		return old, nil
	}
	var list []int
	for _, s := range strings.Split(o.abi, ",") {
		v, err := strconv.Atoi(strings.TrimPrefix(strings.TrimSpace(s), "v"))
		if err != nil {
			return nil, fmt.Errorf("--abi %s: want numbers, all, old or newest", o.abi)
		}
		if !slices.Contains(have, v) {
			return nil, fmt.Errorf("--abi %d: the plugin has %v", v, have)
		}
		list = append(list, v)
	}
	return list, nil
}

// lookedFor are the versions of the run's tables that a release looks for, in its order.
func (o *runOptions) lookedFor(r *facts.Release) []int {
	if o.coll != nil {
		return r.CollNet
	}
	return r.Net
}

// release finds a release by its number; 2.12 means the last 2.12.
func release(name string) (*facts.Release, error) {
	all, err := facts.Releases(headers.FS)
	if err != nil {
		return nil, err
	}
	var found *facts.Release
	for i, r := range all {
		if r.Release == name {
			return &all[i], nil
		}
		if strings.HasPrefix(r.Release, name+".") {
			found = &all[i]
		}
	}
	if found == nil {
		return nil, fmt.Errorf("--nccl %s: no such release among those measured, %s to %s", name, all[0].Release, all[len(all)-1].Release)
	}
	return found, nil
}
