package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"weft/internal/trace/inspector"
	"weft/internal/trace/model"
)

func traceInspector() *cobra.Command {
	c := &cobra.Command{
		Use:   "inspector [flags] FILE|DIR... -o DIR",
		Short: "what NVIDIA's inspector would have written",
		Long: `Writes what NVIDIA's inspector, the profiler that comes with NCCL, would have written
of the job, for what reads its files: of each process DIR/HOST-pidPID.log, with a line
of JSON for each collective, send and receive of 8 KiB and more that GPUs have timed.
Keys, units and order are those of its format v4.0. The flags stand for its variables:
  --min-size     NCCL_INSPECTOR_DUMP_MIN_SIZE_BYTES
  --any-timing   NCCL_INSPECTOR_REQUIRE_KERNEL_TIMING=0
  --verbose      NCCL_INSPECTOR_DUMP_VERBOSE=1
  --prometheus   NCCL_INSPECTOR_PROM_DUMP=1
DIR is made if it is not there. Nobody else may read the files.
Exit status 0: all is written; 1: some files could not be read, or not whole;
2: none could, or usage.`,
		Example: `  weft trace inspector traces/ -o nccl-inspector
  weft trace inspector --verbose --min-size 0 traces/ -o nccl-inspector`,
		Args: ofFiles,
	}
	var w inspectorFiles
	f := c.Flags()
	f.StringVarP(&w.folder, "output", "o", "", "write the files into this `folder`")
	f.Uint64Var(&w.MinBytes, "min-size", inspector.MinBytes, "leave out operations with fewer `bytes`")
	f.BoolVar(&w.AnyTiming, "any-timing", false, "write operations that the host's clock has timed too")
	f.BoolVar(&w.Verbose, "verbose", false, "write the moments of each operation and its kernels too")
	f.BoolVar(&w.metrics, "prometheus", false, "write HOST-pidPID's means for a node exporter instead, nccl_inspector_metrics_*.prom")
	c.RunE = w.write
	return c
}

// inspectorFiles are what "weft trace inspector" writes.
type inspectorFiles struct {
	inspector.Options
	folder  string
	metrics bool
}

func (w *inspectorFiles) write(c *cobra.Command, names []string) error {
	if w.folder == "" {
		return errors.New("-o is missing: it names the folder to write into")
	}
	files, with, err := load(c, names)
	if err != nil {
		return err
	}
	if err := os.Mkdir(w.folder, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	t := model.New(files)
	stdout := c.OutOrStdout()
	written := map[string]bool{}
	for _, p := range inspector.New(t, w.Options) {
		name, write := p.Name(), p.Write
		if w.metrics {
			name, write = p.MetricsName(), p.WriteMetrics
		}
		if written[name] { // processes of two containers have one number
			fmt.Fprintf(c.ErrOrStderr(), "%s: %s: another process is called %s too; this one is left out\n", c.CommandPath(), p.Of.Path, name)
			with = 1
			continue
		}
		written[name] = true
		path := filepath.Join(w.folder, name)
		if err := writeWhole(path, write); err != nil {
			return err
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
	return ended(with)
}
