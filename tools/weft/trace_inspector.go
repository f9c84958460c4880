package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"weft/internal/trace/inspector"
	"weft/internal/trace/model"
)

const traceInspectorUsage = `usage: weft trace inspector [flags] FILE|DIR... -o DIR

Writes what NVIDIA's inspector, the profiler that comes with NCCL, would have written
of the job, for what reads its files: of each process DIR/HOST-pidPID.log, with a line
of JSON for each collective, send and receive of 8 KiB and more that GPUs have timed.
Keys, units and order are those of its format v4.0. The flags stand for its variables:
  --min-size     NCCL_INSPECTOR_DUMP_MIN_SIZE_BYTES
  --any-timing   NCCL_INSPECTOR_REQUIRE_KERNEL_TIMING=0
  --verbose      NCCL_INSPECTOR_DUMP_VERBOSE=1
  --prometheus   NCCL_INSPECTOR_PROM_DUMP=1
DIR is made if it is not there. Nobody else may read the files.
Exit status 0: all is written; 1: some files could not be read, or not whole;
2: none could, or usage.

examples:
  weft trace inspector traces/ -o nccl-inspector
  weft trace inspector --verbose --min-size 0 traces/ -o nccl-inspector

flags:
`

func traceInspector(args []string, stdout, stderr io.Writer) int {
	c := newFileCall("trace inspector", stdout, stderr)
	var o inspector.Options
	out := c.flags.String("o", "", "write the files into this `folder`")
	c.flags.Uint64Var(&o.MinBytes, "min-size", inspector.MinBytes, "leave out operations with fewer `bytes`")
	c.flags.BoolVar(&o.AnyTiming, "any-timing", false, "write operations that the host's clock has timed too")
	c.flags.BoolVar(&o.Verbose, "verbose", false, "write the moments of each operation and its kernels too")
	metrics := c.flags.Bool("prometheus", false, "write HOST-pidPID's means for a node exporter instead, nccl_inspector_metrics_*.prom")
	names, status, ok := c.parse(args, traceInspectorUsage)
	if !ok {
		return status
	}
	if *out == "" {
		return c.refuse(errors.New("-o is missing: it names the folder to write into"))
	}
	files, status := c.load(names)
	if files == nil {
		return status
	}
	if err := os.Mkdir(*out, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return c.refuse(err)
	}
	t := model.New(files)
	written := map[string]bool{}
	for _, p := range inspector.New(t, o) {
		name, write := p.Name(), p.Write
		if *metrics {
			name, write = p.MetricsName(), p.WriteMetrics
		}
		if written[name] { // processes of two containers have one number
			fmt.Fprintf(stderr, "weft trace inspector: %s: another process is called %s too; this one is left out\n", p.Of.Path, name)
			status = 1
			continue
		}
		written[name] = true
		path := filepath.Join(*out, name)
		if err := writeWhole(path, write); err != nil {
			return c.refuse(err)
		}
		fmt.Fprintf(stdout, "%s: %d operations", path, len(p.Operations))
		if left := p.Left.Text(); left != "" {
			fmt.Fprintf(stdout, "; left out: %s", left)
		}
		if p.Of.Loss.Any() {
			fmt.Fprintf(stdout, "; lost: %v", p.Of.Loss)
		}
		fmt.Fprintln(stdout)
	}
	for _, n := range t.Notes {
		fmt.Fprintf(stdout, "note: %s\n", n)
	}
	return status
}
