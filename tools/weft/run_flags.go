package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"weft/headers"
	"weft/headers/facts"
	"weft/internal/ranks"
)

func runCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "run [flags]",
		Short: "move verified data between ranks through a plugin",
		Long: `Connects ranks in a ring through a network plugin, each rank a process that loads
the plugin as NCCL does, and all-reduces float32 over it; the reduction happens in
the host, every element of every iteration is checked. With --input a file's bytes
go around the ring instead, and every rank's checksum is compared. At the end
rank 0 says what each link between two ranks went over.

With --coll the plugin's collNet performs a whole collective of all ranks, as NCCL
has it do where a network can: every type and operation, out of place and in place,
with nccl-tests' columns. Results are compared with exact ones, and each rank's bits
with all others'. Weft offers a collNet with WEFT_COLLNET=1. The tables have no
broadcast: --coll broadcast is an all-gather of the root's part alone (v8 and later).

All ranks run here, or on --hosts, or one of them with --rank, --nranks and --join,
or as srun, mpirun (Open MPI, MPICH) or torchrun has started it: what they set in
the environment is taken, and exit status 2 if only half of it is there. MASTER_ADDR
and MASTER_PORT name another meeting place than the launcher's. --local ignores
it all.
Exit status 0: all data was right; 1: it was not, or a rank failed; 2: usage.`,
		Example: `  weft run                                   3 ranks, the newest table, 8 B to 64 MiB
  weft run --abi all --sizes 8,64K,4M        every table that the plugin exports
  weft run --nccl 2.12.12 --input photo.jpg  the table that NCCL 2.12.12 would take
  weft run --device mlx5_0+mlx5_1            one device made of two, as NCCL merges NICs
  weft run --require rdma                    fail if a link goes over TCP
  weft run -b 8 -e 128M -f 2 -n 20 -w 5      as nccl-tests
  weft run --coll allreduce --type all --op all -b 8 -e 1M -f 8
  weft run --rank 1 --nranks 4 --join 10.0.0.1:29500
  srun -N 4 weft run                         a rank on each of four nodes
  mpirun -n 4 weft run                       four ranks, of Open MPI or MPICH
  weft run --hosts node1,node2               a rank on each, started by ssh`,
	}
	o := &runOptions{}
	o.flags(c)
	c.RunE = func(c *cobra.Command, args []string) (err error) {
		ctx := c.Context()
		if o.hosts.leash {
			if ctx, err = o.hosts.leashed(ctx, c.InOrStdin()); err != nil {
				return err
			}
		}
		if len(o.hosts.list) > 0 && len(args) == 0 {
			return o.hosts.overSSH(c, c.OutOrStdout(), nil)
		}
		if err := o.check(c.Flags(), args); err != nil {
			return fmt.Errorf("%w (weft run -h explains)", err)
		}
		return o.carryOut(ctx, c.OutOrStdout(), c.ErrOrStderr())
	}
	return c
}

type runOptions struct {
	host, plugin, device string
	abi, nccl            string
	sizes                []int64
	iters, warm          int
	input, output        string
	bytes                int64
	require              string
	timeout              time.Duration
	json, verbose, flush bool
	coll                 *ranks.Collectives // nil: a ring over net
	level                int                // the last of NCCL's log levels that is printed

	placing
	runFlags
}

// runFlags are flags from which check makes options.
type runFlags struct {
	min, max, sizeList string
	factor             int
	collFlags
}

// flags have nccl-tests' names for one-letter forms.
func (o *runOptions) flags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&o.plugin, "plugin", "", "the `library` to run through (default: ../lib/libnccl-net-weft.so beside this program)")
	f.StringVar(&o.host, "host", "", "the weft-host `program` (default: beside this one)")
	f.StringVar(&o.device, "device", "", "`name` or number of the device, or several joined by + to make one of them (default: the first)")
	f.StringVar(&o.abi, "abi", "newest", "`tables`: a number, a list such as 4,12, all, old (all but the newest) or newest")
	f.StringVar(&o.nccl, "nccl", "", "the table that this `release` of NCCL takes, such as 2.12.12")
	f.StringVarP(&o.min, "min", "b", "8", "smallest `size` in bytes (K, M, G: powers of 1024)")
	f.StringVarP(&o.max, "max", "e", "64M", "largest `size`")
	f.IntVarP(&o.factor, "factor", "f", 2, "from one size to the next")
	f.StringVar(&o.sizeList, "sizes", "", "`sizes` instead, such as 8,64K,4M")
	f.IntVarP(&o.iters, "iters", "n", 0, "iterations of each size (default: 4 to 20, fewer for large sizes)")
	f.IntVarP(&o.warm, "warmup", "w", 1, "iterations before those that are timed")
	f.StringVar(&o.input, "input", "", "broadcast this `file` from rank 0 instead")
	f.StringVar(&o.kind, "coll", "", "have the plugin's collNet perform this `collective`: allreduce, allgather, reducescatter or broadcast")
	f.StringVarP(&o.types, "type", "d", "float", "`types` of --coll's elements: some of int8, uint8, int32, uint32, int64, uint64, half, float, double, bfloat16, f8e4m3, f8e5m2, or all")
	f.StringVarP(&o.ops, "op", "o", "sum", "`operations` of --coll: some of sum, prod, max, min, or all")
	f.IntVarP(&o.root, "root", "r", 0, "`rank` whose buffer --coll broadcast gives to all")
	f.IntVarP(&o.checks, "check", "c", 1, "as in nccl-tests: `n` checked iterations of --coll, none with 0; a ring's are all checked whatever it is")
	f.StringVar(&o.piece, "piece", "", "hand a collective over in operations of at most this `size`, as NCCL does with its chunks (default: as large as the plugin takes)")
	f.IntVar(&o.window, "window", 8, "`number` of such operations under way")
	o.placing.flags(f, 3)
	f.StringVar(&o.require, "require", "", "`rdma`: fail where a link between ranks goes over anything else (WEFT_REQUIRE=rdma for every rank; rank 0's counts)")
	f.BoolVar(&o.flush, "flush", false, "first receive groups of many sizes, each flushed as NCCL flushes a GPU's memory (host memory: with WEFT_FLUSH=always)")
	durationVar(f, &o.timeout, "timeout", 2*time.Minute, "limit of each step")
	f.BoolVar(&o.json, "json", false, "write one JSON document instead of the table")
	f.StringVarP(&o.output, "output_file", "J", "", "write what nccl-tests' -J writes to this `file` of rank 0's host too, or to one with a number behind its name where there is one")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "print what the plugin logs, as NCCL_DEBUG=INFO does; without either its warnings")
	oneOf(c, "coll", "allreduce", "allgather", "reducescatter", "broadcast")
	oneOf(c, "require", ranks.RequireRDMA)
}

// check finds what does not fit together, and fills in what was left out.
func (o *runOptions) check(f *pflag.FlagSet, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("what is %q? Only flags are expected", args[0])
	}
	if o.checks < 0 {
		return fmt.Errorf("-c %d: want 0 or more", o.checks)
	}
	given := f.Changed
	var err error
	if o.level, err = logLevel(os.Getenv("NCCL_DEBUG"), o.verbose); err != nil {
		return err
	}
	if given("abi") && given("nccl") {
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
	if err := o.find(given); err != nil {
		return err
	}
	if o.nranks < 2 || o.nranks > 4096 {
		return fmt.Errorf("--nranks %d: a ring has 2 to 4096 ranks", o.nranks)
	}
	if o.sizes, err = o.chosenSizes(given); err != nil {
		return err
	}
	if o.plugin, err = pluginAt("--plugin", o.plugin); err != nil {
		return err
	}
	if o.host == "" {
		if o.host, err = ownHost(); err != nil {
			return err
		}
	}
	o.coll, err = o.collectives(given, o.nranks)
	return err
}

// chosenSizes are in bytes; none: only the input file is sent.
func (o *runOptions) chosenSizes(given func(flag string) bool) ([]int64, error) {
	if o.sizeList != "" {
		if given("min") || given("max") || given("factor") {
			return nil, errors.New("--sizes and --min, --max, --factor both choose the sizes: give one")
		}
		var list []int64
		for _, s := range strings.Split(o.sizeList, ",") {
			n, err := parseSize(s)
			if err != nil {
				return nil, fmt.Errorf("--sizes: %w", err)
			}
			list = append(list, n)
		}
		return list, nil
	}
	if o.input != "" && !given("min") && !given("max") {
		return nil, nil // the file alone
	}
	from, err := parseSize(o.min)
	if err != nil {
		return nil, fmt.Errorf("--min: %w", err)
	}
	to, err := parseSize(o.max)
	if err != nil {
		return nil, fmt.Errorf("--max: %w", err)
	}
	if from > to {
		return nil, fmt.Errorf("--min %s is larger than --max %s", o.min, o.max)
	}
	if o.factor < 2 {
		return nil, fmt.Errorf("--factor %d: want at least 2", o.factor)
	}
	var list []int64
	for n := from; n <= to; n *= int64(o.factor) {
		list = append(list, n)
	}
	return list, nil
}

// parseSize reads 8, 64K, 4M or 1G, in bytes: whole float32s, at most 4 GiB.
func parseSize(s string) (int64, error) {
	n, err := parseBytes(s)
	if err == nil && n%4 != 0 {
		return 0, fmt.Errorf("%s: a float32 has 4 bytes, so sizes are multiples of 4", s)
	}
	return n, err
}

// parseBytes reads a size that nothing has to fit into, up to 4 GiB.
func parseBytes(s string) (int64, error) {
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
		return 0, fmt.Errorf("%s: want at least 1 byte and at most 4G", s)
	}
	return n << shift, nil
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
