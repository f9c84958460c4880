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
	"sync"
	"time"

	"weft/internal/conform"
	"weft/internal/host"
)

const conformUsage = `usage: weft conform [flags] LIB.so...

Judges every table that each LIB.so exports against the plugin contract: each rule
in processes of its own, so that a crash is one finding. Exit status 0: the contract
holds; 1: it does not; 2: there is a LIB.so of which no table could be judged,
because it is missing, does not open, or is no plugin.

A finding marked "care" concerns what NCCL itself never does (a second close, a
stale handle); it counts only with --strict.

examples:
  weft conform dist/lib/libnccl-net-weft.so
  weft conform ./libnccl-net-other.so --abi 4,12 --rule close. --tap
  weft conform --junit report.xml --strict dist/lib/libnccl-net-weft.so

flags:
`

// runConform is "weft conform".
func runConform(args []string) int { return conformTo(args, os.Stdout, os.Stderr) }

func conformTo(args []string, stdout, stderr io.Writer) int {
	f := flag.NewFlagSet("conform", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.Usage = func() {}
	tap := f.Bool("tap", false, "write Test Anything Protocol to stdout")
	junit := f.String("junit", "", "write JUnit XML to this `file`")
	abi := f.String("abi", "", "net tables to judge, such as 4,12 (default: all exported)")
	rules := f.String("rule", "", "rules to judge: ids, or parts such as close. (default: all)")
	slow := f.Bool("slow", false, "also move 1 GiB in one message (takes 2 GiB of memory)")
	strict := f.Bool("strict", false, "findings marked care count as failures")
	var patience time.Duration
	durationVar(f, &patience, "patience", 10*time.Second, "a call that takes longer hangs")
	hostBin := f.String("host", "", "the weft-host `program` (default: beside this one)")
	verbose := f.Bool("v", false, "print what the plugin logs to stderr")
	list := f.Bool("list", false, "list the rules and leave")
	libs, err := parseMixed(f, args)
	if errors.Is(err, flag.ErrHelp) {
		f.SetOutput(stdout)
		fmt.Fprint(stdout, conformUsage)
		f.PrintDefaults()
		return 0
	}
	if err != nil {
		fmt.Fprintln(stderr, "weft conform -h explains the flags")
		return 2
	}
	if *list {
		listRules(stdout)
		return 0
	}
	if len(libs) == 0 {
		fmt.Fprintln(stderr, "weft conform: want the library, or several, to judge (weft conform -h explains)")
		return 2
	}
	o := conform.Options{Host: *hostBin, Slow: *slow, Strict: *strict, Patience: patience}
	if o.Tables, err = versions(*abi); err != nil {
		fmt.Fprintf(stderr, "weft conform: --abi: %v\n", err)
		return 2
	}
	if *rules != "" {
		o.Rules = strings.Split(*rules, ",")
	}
	if o.Host == "" {
		if o.Host, err = ownHost(); err != nil {
			fmt.Fprintf(stderr, "weft conform: %v\n", err)
			return 2
		}
	}
	t := &conform.TAP{W: stdout}
	o.Report = t.Report
	o.Note = func(text string) { fmt.Fprintf(stdout, "# %s\n", text) }
	if *verbose {
		o.Log = logTo(stderr)
	}
	var every []conform.Outcome
	status := 0
	for _, lib := range libs {
		if o.Lib = lib; strings.Contains(lib, "/") || exists(lib) {
			if !exists(lib) {
				fmt.Fprintf(stderr, "weft conform: %s: no such file\n", lib)
				status = 2
				continue
			}
			if o.Lib, err = filepath.Abs(lib); err != nil {
				fmt.Fprintf(stderr, "weft conform: %v\n", err)
				return 2
			}
		}
		if !*tap {
			fmt.Fprintf(stdout, "%s\n", lib)
			o.Report = (&plain{w: stdout}).report
		}
		all, err := conform.Run(o)
		every = append(every, all...)
		if err != nil {
			fmt.Fprintf(stderr, "weft conform: %s: %v\n", lib, err)
			status = 2
			continue
		}
		status = max(status, verdict(lib, all, *strict, *tap, stdout, stderr))
	}
	if *tap {
		t.End()
	}
	if *junit != "" && len(every) > 0 {
		if err := writeJUnit(*junit, every); err != nil {
			fmt.Fprintf(stderr, "weft conform: --junit: %v\n", err)
			return 2
		}
	}
	return status
}

// parseMixed takes flags before, between and behind what is not a flag; behind -- nothing is one.
func parseMixed(f *flag.FlagSet, args []string) (rest []string, err error) {
	var plain []string
	if i := slices.Index(args, "--"); i >= 0 {
		args, plain = args[:i], args[i+1:]
	}
	for {
		if err := f.Parse(args); err != nil {
			return nil, err
		}
		if f.NArg() == 0 {
			return append(rest, plain...), nil
		}
		rest, args = append(rest, f.Arg(0)), f.Args()[1:]
	}
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
