package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// meeting is where the two ends of perftest exchange what verbs needs.
const meeting = "18515"

// ackTimeout is NCCL's and weft's, 4.3 s: perftest's own 67 ms repeats writes that an emulated CPU is still at.
const ackTimeout = "20"

// perftest runs a program of perftest on both ends, each on the core that weft's end has, and returns the client's figures:
// the last row of numbers that it prints.
func (c *config) perftest(program string, args ...string) ([]string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	end := func(cpu int, more ...string) (*exec.Cmd, *bytes.Buffer) {
		line := append([]string{"-c", strconv.Itoa(cpu), program, "-d", c.devices[cpu], "-x", "1", "-F", "-u", ackTimeout}, args...)
		cmd := exec.CommandContext(ctx, "taskset", append(line, more...)...)
		out := &bytes.Buffer{}
		cmd.Stdout, cmd.Stderr = out, out
		return cmd, out
	}
	server, serverOut := end(1)
	if err := server.Start(); err != nil {
		return nil, err
	}
	if err := awaitListener(ctx); err != nil {
		server.Process.Kill()
		return nil, errors.Join(err, server.Wait(), errors.New(serverOut.String()))
	}
	client, out := end(0, "127.0.0.1")
	errClient := client.Run()
	if errClient != nil {
		server.Process.Kill()
	}
	if err := errors.Join(errClient, server.Wait()); err != nil {
		return nil, fmt.Errorf("%w: %s %s", err, out, serverOut)
	}
	var row []string
	for line := range strings.Lines(out.String()) {
		if f := strings.Fields(line); len(f) > 3 && f[0][0] >= '1' && f[0][0] <= '9' {
			row = f
		}
	}
	if row == nil {
		return nil, fmt.Errorf("no figures in %s", out)
	}
	return row, nil
}

// awaitListener waits for the server without taking its one connection, or its port before it.
func awaitListener(ctx context.Context) error {
	const listens = ":%04X 00000000:0000 0A " // local port, peer, state
	port, err := strconv.Atoi(meeting)
	if err != nil {
		return err
	}
	for ; ctx.Err() == nil; time.Sleep(20 * time.Millisecond) {
		for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
			text, err := os.ReadFile(table)
			if err != nil {
				return err
			}
			for line := range strings.Lines(string(text)) {
				if strings.Contains(strings.ReplaceAll(line, strings.Repeat("0", 32), "00000000"), fmt.Sprintf(listens, port)) {
					return nil
				}
			}
		}
	}
	return ctx.Err()
}

// fewest messages that perftest agrees to send.
const fewest = 5

// perftestBW is in MB/s; -n counts each queue pair's messages.
func (c *config) perftestBW(program string, size, count int64, qps int) (float64, error) {
	row, err := c.perftest(program, "-s", fmt.Sprint(size), "-n", fmt.Sprint(max(fewest, count/int64(qps))), "-q", fmt.Sprint(qps))
	if err != nil {
		return 0, err
	}
	v, err := strconv.ParseFloat(row[3], 64)
	return v * (1 << 20) / 1e6, err
}

// perftestLat is the median in us: bytes, iterations, min, max, typical, ...
func (c *config) perftestLat(program string, size, iters int64) (float64, error) {
	row, err := c.perftest(program, "-s", fmt.Sprint(size), "-n", fmt.Sprint(iters))
	if err != nil {
		return 0, err
	}
	return strconv.ParseFloat(row[4], 64)
}
