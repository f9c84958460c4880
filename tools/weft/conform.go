package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"weft/internal/conform"
	"weft/internal/host"
)

func conformCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "conform [flags] LIB.so...",
		Short: "judge a plugin against NCCL's contract, table by table",
		Long: `Judges every table that each LIB.so exports against the plugin contract: each rule
in processes of its own, so that a crash is one finding. Exit status 0: the contract
holds; 1: it does not; 2: there is a LIB.so of which no table could be judged,
because it is missing, does not open, or is no plugin.

A finding marked "care" concerns what NCCL itself never does (a second close, a
stale handle); it counts only with --strict.`,
		Example: `  weft conform dist/lib/libnccl-net-weft.so
  weft conform ./libnccl-net-other.so --abi 4,12 --rule close. --tap
  weft conform --junit report.xml --strict dist/lib/libnccl-net-weft.so`,
	}
	var o conformFlags
	f := c.Flags()
	f.BoolVar(&o.tap, "tap", false, "write Test Anything Protocol to stdout")
	f.StringVar(&o.junit, "junit", "", "write JUnit XML to this `file`")
	f.StringVar(&o.abi, "abi", "", "net `tables` to judge, such as 4,12 (default: all exported)")
	f.StringSliceVar(&o.Rules, "rule", nil, "`rules` to judge: ids, or parts such as close. (default: all)")
	f.BoolVar(&o.Slow, "slow", false, "also move 1 GiB in one message (takes 2 GiB of memory)")
	f.BoolVar(&o.Strict, "strict", false, "findings marked care count as failures")
	durationVar(f, &o.Patience, "patience", 10*time.Second, "a call that takes longer hangs")
	f.StringVar(&o.Host, "host", "", "the weft-host `program` (default: beside this one)")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "print what the plugin logs to stderr")
	list := f.Bool("list", false, "list the rules and leave")
	var ids []string
	for _, r := range conform.AllRules() {
		ids = append(ids, fmt.Sprintf("%s\t%s", r.ID, r.Says))
	}
	oneOf(c, "rule", ids...)
	c.RunE = func(c *cobra.Command, libs []string) error {
		if *list {
			listRules(c.OutOrStdout())
			return nil
		}
		if len(libs) == 0 {
			return errors.New("want the library, or several, to judge (weft conform -h explains)")
		}
		return o.judge(libs, c.OutOrStdout(), c.ErrOrStderr())
	}
	return c
}

// conformFlags is what "weft conform" is asked for.
type conformFlags struct {
	conform.Options
	tap, verbose bool
	junit, abi   string
}

func (f *conformFlags) judge(libs []string, stdout, stderr io.Writer) error {
	var err error
	if f.Tables, err = versions(f.abi); err != nil {
		return fmt.Errorf("--abi: %w", err)
	}
	if f.Host == "" {
		if f.Host, err = ownHost(); err != nil {
			return err
		}
	}
	t := &conform.TAP{W: stdout}
	f.Report = t.Report
	f.Note = func(text string) { fmt.Fprintf(stdout, "# %s\n", text) }
	if f.verbose {
		f.Log = logTo(stderr)
	}
	var every []conform.Outcome
	with := 0
	for _, lib := range libs {
		all, lasts, err := f.judgeOne(lib, stdout, stderr)
		if err != nil {
			return err
		}
		every, with = append(every, all...), max(with, lasts)
	}
	if f.tap {
		t.End()
	}
	if f.junit != "" && len(every) > 0 {
		if err := writeJUnit(f.junit, every); err != nil {
			return fmt.Errorf("--junit: %w", err)
		}
	}
	return ended(with)
}

// judgeOne tells what is wrong with a library, and returns the exit status for it.
func (f *conformFlags) judgeOne(lib string, stdout, stderr io.Writer) (all []conform.Outcome, with int, err error) {
	if f.Lib = lib; strings.Contains(lib, "/") || exists(lib) {
		if !exists(lib) {
			fmt.Fprintf(stderr, "weft conform: %s: no such file\n", lib)
			return nil, 2, nil
		}
		if f.Lib, err = filepath.Abs(lib); err != nil {
			return nil, 2, err
		}
	}
	if !f.tap {
		fmt.Fprintf(stdout, "%s\n", lib)
		f.Report = (&plain{w: stdout}).report
	}
	all, err = conform.Run(f.Options)
	if err != nil {
		fmt.Fprintf(stderr, "weft conform: %s: %v\n", lib, err)
		return all, 2, nil
	}
	return all, verdict(lib, all, f.Strict, f.tap, stdout, stderr), nil
}

// logTo prints what plugins say in several processes at once.
func logTo(w io.Writer) func(host.LogLine) {
	var mu sync.Mutex // protects whole lines
	return func(l host.LogLine) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintf(w, "# %s %s:%d %s\n", levelWord(l.Level), l.Func, l.Line, l.Text)
	}
}

func verdict(lib string, all []conform.Outcome, strict, quiet bool, w, errs io.Writer) int {
	var held, failed, care, skipped, ofTables int
	for _, o := range all {
		if o.Version > 0 {
			ofTables++
		}
		switch {
		case o.Skip != "":
			skipped++
		case o.OK():
			held++
		case o.Rule.Care && !strict:
			care++
		default:
			failed++
		}
	}
	if !quiet {
		fmt.Fprintf(w, "\n%s: %d rules hold, %d do not, %d of care do not, %d not judged\n", lib, held, failed, care, skipped)
	}
	switch {
	case ofTables == 0:
		fmt.Fprintf(errs, "weft conform: %s: no table could be judged\n", lib)
		return 2
	case failed > 0:
		return 1
	}
	return 0
}

// plain prints findings as they come, and one line for each table.
type plain struct {
	w     io.Writer
	table string
}

func (p *plain) report(o conform.Outcome) {
	table := strings.TrimSuffix(o.Label(), o.Rule.ID)
	if table != p.table {
		fmt.Fprintf(p.w, "%s\n", table)
		p.table = table
	}
	switch {
	case o.Skip != "":
		fmt.Fprintf(p.w, "  skip  %-18s %s\n", o.Rule.ID, o.Skip)
	case !o.OK():
		word := "FAIL"
		if o.Rule.Care {
			word = "care"
		}
		fmt.Fprintf(p.w, "  %s  %-18s %s\n        contract: %s (%s)\n", word, o.Rule.ID, o.Fail, o.Rule.Says, o.Rule.Basis)
	}
}

func listRules(w io.Writer) {
	for _, r := range conform.AllRules() {
		tables := "all"
		switch {
		case r.From > 0 && r.To > 0:
			tables = fmt.Sprintf("v%d-v%d", r.From, r.To)
		case r.From > 0:
			tables = fmt.Sprintf("v%d-", r.From)
		case r.To > 0:
			tables = fmt.Sprintf("-v%d", r.To)
		}
		fmt.Fprintf(w, "%-18s %-7s %s (%s)\n", r.ID, tables, r.Says, r.Basis)
	}
}

func versions(list string) ([]int, error) {
	var out []int
	for _, s := range strings.FieldsFunc(list, func(r rune) bool { return r == ',' }) {
		v, err := strconv.Atoi(strings.TrimPrefix(s, "v"))
		if first, last := host.FamilyNet.Versions(); err != nil || v < first || v > last {
			return nil, fmt.Errorf("%q is not a table version %d to %d", s, first, last)
		}
		out = append(out, v)
	}
	return out, nil
}

func exists(path string) bool { _, err := os.Stat(path); return err == nil }

func writeJUnit(path string, all []conform.Outcome) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := conform.JUnit(f, all); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}
