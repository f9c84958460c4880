package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"weft/internal/host"
	"weft/internal/ranks"
)

// carryOut runs what check has found well.
func (o *runOptions) carryOut(ctx context.Context, stdout, stderr io.Writer) error {
	out := newReport(o, stdout, stderr)
	if o.output != "" && o.rank <= 0 { // before anything takes time
		var err error
		if out.file, err = outputFile(o.output); err != nil {
			out.end(err)
			return fmt.Errorf("--output_file: %w", err)
		}
		out.Note("nccl-tests' JSON goes to %s", out.file.Name())
	}
	ctx, stop := stoppable(ctx, out.Note)
	defer stop()
	err := o.run(ctx, out)
	err = errors.Join(err, out.writeOutput(err))
	out.end(err)
	var u usageError
	var t toldError
	switch {
	case errors.As(err, &u):
		return fmt.Errorf("%w (weft run -h explains)", err)
	case errors.As(err, &t):
		return status(1)
	case err != nil:
		return failure{err}
	case !out.ok():
		return status(1)
	}
	return nil
}

// stoppable ends with the first Ctrl-C or SIGTERM, which it says; a second one ends the process.
func stoppable(parent context.Context, note func(format string, a ...any)) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(parent)
	came := make(chan os.Signal, 1)
	signal.Notify(came, os.Interrupt, syscall.SIGTERM)
	go func() {
		select {
		case s := <-came:
			signal.Stop(came)
			name := unix.SignalName(s.(syscall.Signal))
			note("%s: ending every rank; a second one ends this process at once", name)
			cancel(fmt.Errorf("%w by %s", ranks.ErrStopped, name))
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(came)
		cancel(nil)
	}
}

// toldError is one that rank 0 tells for all.
type toldError struct{ error }

// usageError is a wish that cannot be met, however often it is repeated.
type usageError struct{ error }

func (o *runOptions) run(ctx context.Context, out *report) error {
	if o.input != "" && o.rank <= 0 {
		sum, size, err := fileSum(o.input)
		if err != nil {
			return usageError{fmt.Errorf("--input: %w", err)}
		}
		out.fileSum, o.bytes = sum, size
	}
	tables, err := o.tables(ctx, out)
	if err != nil {
		return err
	}
	if o.place != nil {
		return o.runJoined(ctx, tables, out)
	}
	if o.alone != "" {
		out.Note("%s has started no other process: all %d ranks run here", o.alone, o.nranks)
	}
	for _, abi := range tables {
		if err := o.runLocal(ctx, abi, out); err != nil {
			return fmt.Errorf("%s: %w", o.family().Symbol(abi), err)
		}
	}
	return nil
}

// runLocal runs every rank of one table here.
func (o *runOptions) runLocal(ctx context.Context, abi int, out *report) error {
	groups := ranks.Local(o.nranks, o.timeout)
	stop := context.AfterFunc(ctx, func() { groups[0].Abort(context.Cause(ctx)) })
	defer stop()
	errs := make([]error, o.nranks)
	var wg sync.WaitGroup
	for i, g := range groups {
		wg.Go(func() { errs[i] = ranks.Run(g, o.ranks(abi, out), out) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		text, _ := groups[0].Verdict()
		return errors.New(text)
	}
	return nil
}

// runJoined is one rank among machines; rank 0's choice of tables counts.
func (o *runOptions) runJoined(ctx context.Context, tables []int, out *report) error {
	g, err := o.meet(ctx, o.timeout, out.Note)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { g.Abort(context.Cause(ctx)) })
	defer stop()
	if err := o.runTables(g, tables, out); err != nil {
		g.Abort(err) // unless Run has said it
		text, told := g.Verdict()
		if told && o.rank > 0 && o.place.Launcher != "" { // one terminal shows what all ranks write
			return toldError{errors.New(text)}
		}
		return errors.New(text)
	}
	g.Leave()
	return nil
}

func (o *runOptions) runTables(g ranks.Group, tables []int, out *report) error {
	all, err := g.Gather("tables", []byte(strings.Trim(fmt.Sprint(tables), "[]")))
	if err != nil {
		return err
	}
	for _, field := range strings.Fields(string(all[0])) {
		abi, err := strconv.Atoi(field)
		if err != nil {
			return fmt.Errorf("rank 0 names a table %q: do all ranks run the same weft?", field)
		}
		if err := ranks.Run(g, o.ranks(abi, out), out); err != nil {
			return err
		}
	}
	return nil
}

func (o *runOptions) ranks(abi int, out *report) ranks.Options {
	r := ranks.Options{Host: o.host, Plugin: o.plugin, Device: o.device, Log: out.log, Abi: abi, Sizes: o.sizes, Iters: o.iters, Warm: o.warm,
		Input: o.input, Bytes: o.bytes, Flush: o.flush, Limit: o.timeout, Require: o.require, Coll: o.coll}
	if o.input != "" {
		if path, err := filepath.Abs(o.input); err == nil {
			r.Input = path
		}
	}
	return r
}

// tables asks a host which tables the plugin has, and picks those that were asked for.
func (o *runOptions) tables(ctx context.Context, out *report) ([]int, error) {
	h, err := host.Start(host.Options{Bin: o.host, Name: "host", Deadline: o.timeout})
	if err != nil {
		return nil, err
	}
	defer h.Close()
	stop := context.AfterFunc(ctx, h.Kill) // a library's constructors may take as long as they like
	defer stop()
	lib, err := h.Load(o.plugin)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("%w (--plugin names the library, as dlopen takes it)", err)
	}
	have, err := lib.Tables(o.family())
	if err != nil {
		return nil, err
	}
	if len(have) == 0 {
		return nil, o.errNoTable()
	}
	picked, err := o.pick(have)
	if err != nil {
		return nil, usageError{err}
	}
	for _, v := range picked {
		if o.family().Witnessed(v) {
			continue
		}
		table, err := lib.Bind(o.family(), v, "")
		if err != nil {
			return nil, err
		}
		out.Note("%s", table.Unwitnessed())
	}
	return picked, nil
}

// fileSum is the file's SHA-256 as this process reads it.
func fileSum(path string) (sum string, size int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return "", 0, err
	}
	if !st.Mode().IsRegular() {
		return "", 0, fmt.Errorf("%s is not a regular file", path)
	}
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", 0, err
	}
	return hex.EncodeToString(h.Sum(nil)), st.Size(), nil
}
