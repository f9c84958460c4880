package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"

	"weft/internal/metrics/otlp"
	"weft/internal/metrics/prom"
	"weft/internal/version"
)

func metricsCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "metrics [flags] FILE|DIR...",
		Short: "what connections have counted, for Prometheus and OpenTelemetry",
		Long: `Gives what processes have counted with WEFT_PROFILE=metrics, the files
weft-HOST-PID-ID.met of WEFT_PROFILE_DIR, and what the RDMA cards of this machine count
of their ports: to stdout in Prometheus's format, or where the flags say. A folder
stands for all such files in it, also those that come later. A file of a process that
has ended is counted until it is removed; that is said.
Exit status 0: all was read and sent; 1: something was not; 2: none could, or usage.`,
		Example: `  weft metrics /tmp/traces
  weft metrics --listen 127.0.0.1:9464 /tmp/traces
  weft metrics --textfile /var/lib/node_exporter/weft.prom --every 15s /tmp/traces
  weft metrics --otlp http://collector:4318 --every 15s /tmp/traces`,
		Args: ofFiles,
	}
	f := c.Flags()
	var e exporter
	f.StringVar(&e.textfile, "textfile", "", "write to this `file`, which ends in .prom, for node_exporter's textfile collector; as a whole or not at all")
	f.StringVar(&e.listen, "listen", "", "reply to scrapes of /metrics at this `address`, HOST:PORT; without HOST: 127.0.0.1")
	f.StringVar(&e.otlp, "otlp", "", "send to the OpenTelemetry collector at this `URL`, by HTTP and protobuf")
	durationVar(f, &e.every, "every", 0, "write the file and send again and again; 0: once")
	sys := f.String("sys", "/sys", "the `folder` in which cards show their counters")
	c.RunE = func(c *cobra.Command, names []string) error {
		ctx, stop := signal.NotifyContext(c.Context(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		return e.export(ctx, c, names, *sys)
	}
	return c
}

// exporter is what "weft metrics" is asked for.
type exporter struct {
	textfile, listen, otlp string
	every                  time.Duration
}

func (e *exporter) export(ctx context.Context, c *cobra.Command, names []string, sys string) error {
	if err := e.check(); err != nil {
		return err
	}
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	stdout, stderr := c.OutOrStdout(), c.ErrOrStderr()
	var problem atomic.Bool // scrapes find them too
	collector := &prom.Collector{Names: names, Proc: "/proc", Sys: sys, Host: host,
		Say:  func(err error) { fmt.Fprintf(stderr, "weft metrics: %v\n", err); problem.Store(true) },
		Note: func(err error) { fmt.Fprintf(stderr, "weft metrics: note: %v\n", err) },
	}
	for _, name := range names {
		if _, err := os.Stat(name); err != nil {
			return err
		}
	}
	if err := e.run(ctx, collector.Gatherer(), stdout, stderr); err != nil {
		return err
	}
	switch {
	case problem.Load() && collector.Read() == 0:
		return status(2)
	case problem.Load():
		return status(1)
	}
	return nil
}

// check finds what does not fit together.
func (e *exporter) check() error {
	switch {
	case e.textfile != "" && filepath.Ext(e.textfile) != ".prom":
		return fmt.Errorf("--textfile %s: end it in .prom, else node_exporter does not read it", e.textfile)
	case e.every < 0 || e.every > 0 && e.every < time.Second:
		return fmt.Errorf("--every %v: a second is the least", e.every)
	case e.every > 0 && e.textfile == "" && e.otlp == "":
		return errors.New("--every is for --textfile and --otlp")
	}
	return nil
}

// address is where to listen: by itself only this machine is replied to.
func address(listen string) string {
	if !strings.Contains(listen, ":") {
		listen = ":" + listen
	}
	if strings.HasPrefix(listen, ":") {
		listen = "127.0.0.1" + listen
	}
	return listen
}

// run does it once, or until ctx is done.
func (e *exporter) run(ctx context.Context, g prometheus.Gatherer, stdout, stderr io.Writer) error {
	if e.textfile == "" && e.otlp == "" && e.listen == "" {
		return prom.Write(stdout, g)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	served := make(chan error, 1)
	if e.listen != "" {
		l, err := net.Listen("tcp", address(e.listen))
		if err != nil {
			return err
		}
		fmt.Fprintf(stderr, "weft metrics: listening on http://%s/metrics\n", l.Addr())
		go func() {
			defer cancel()
			served <- prom.Serve(ctx, l, g)
		}()
	}
	err := e.push(ctx, g, stderr)
	if e.listen == "" || err != nil {
		return err
	}
	return <-served
}

// push writes and sends, once or until ctx is done. What fails once may succeed later.
func (e *exporter) push(ctx context.Context, g prometheus.Gatherer, stderr io.Writer) error {
	var to *otlp.Sender
	if e.otlp != "" {
		var err error
		if to, err = otlp.New(ctx, e.otlp, version.String()); err != nil {
			return err
		}
		defer to.Close(context.WithoutCancel(ctx))
	}
	for {
		var err error
		if e.textfile != "" {
			err = prometheus.WriteToTextfile(e.textfile, g)
		}
		if to != nil {
			err = errors.Join(err, to.Send(ctx, g))
		}
		if e.every == 0 {
			return err
		}
		if err != nil && ctx.Err() == nil {
			fmt.Fprintf(stderr, "weft metrics: %v\n", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(e.every):
		}
	}
}
