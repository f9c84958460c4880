package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// cables join two network namespaces: eth0, eth1 and so on of each, where the
// first has 10.79.I.1/24 and the second 10.79.I.2.
type cables struct{ ns [2]string }

// errNoCables says why this machine has none.
var errNoCables = errors.New("network namespaces cannot be made here")

func run(words ...string) error {
	if out, err := exec.Command(words[0], words[1:]...).CombinedOutput(); err != nil {
		return fmt.Errorf("%v: %w %s", words, err, out)
	}
	return nil
}

func newCables(n int) (c *cables, err error) {
	c = &cables{}
	defer func() {
		if err != nil {
			c.remove()
			err = fmt.Errorf("%w: %w", errNoCables, err)
		}
	}()
	for i := range c.ns {
		ns := fmt.Sprintf("weft-bench-%d-%d", os.Getpid(), i)
		if err := run("ip", "netns", "add", ns); err != nil {
			return c, err
		}
		c.ns[i] = ns
	}
	for i := range n {
		eth := fmt.Sprintf("eth%d", i)
		if err := run("ip", "-n", c.ns[0], "link", "add", eth, "type", "veth", "peer", "name", eth, "netns", c.ns[1]); err != nil {
			return c, err
		}
		for end, ns := range c.ns {
			if err := errors.Join(run("ip", "-n", ns, "addr", "add", fmt.Sprintf("10.79.%d.%d/24", i, end+1), "dev", eth), run("ip", "-n", ns, "link", "set", eth, "up")); err != nil {
				return c, err
			}
		}
	}
	return c, c.up(n)
}

// up waits until both ends of n cables carry packets, which the kernel finds out by and by.
func (c *cables) up(n int) error {
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		ready := 0
		for _, ns := range c.ns {
			out, err := exec.Command("ip", "-n", ns, "-o", "link", "show").Output()
			if err != nil {
				return err
			}
			ready += strings.Count(string(out), "state UP")
		}
		if ready == 2*n {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("%d of %d ends of cables are up", ready, 2*n)
		}
	}
}

// shape lets eth<i> of the first namespace carry so many GB/s.
func (c *cables) shape(i int, gbs float64) error {
	return run("tc", "-n", c.ns[0], "qdisc", "replace", "dev", fmt.Sprintf("eth%d", i), "root", "tbf", "rate", fmt.Sprintf("%.0fbit", gbs*8e9), "burst", "256kb", "latency", "20ms")
}

func (c *cables) remove() {
	for _, ns := range c.ns {
		if ns != "" {
			_ = run("ip", "netns", "del", ns)
		}
	}
}

// inside runs f, and starts processes from it, in a network namespace; "" is ours.
func inside(ns string, f func() error) (err error) {
	if ns == "" {
		return f()
	}
	there, err := os.Open("/run/netns/" + ns)
	if err != nil {
		return err
	}
	defer there.Close()
	runtime.LockOSThread() // and so it stays when we cannot come back: then the thread ends with the goroutine
	ours, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return err
	}
	defer ours.Close()
	if err := unix.Setns(int(there.Fd()), unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("setns: %w", err)
	}
	defer func() {
		if back := unix.Setns(int(ours.Fd()), unix.CLONE_NEWNET); back != nil {
			err = errors.Join(err, fmt.Errorf("setns: %w", back))
			return
		}
		runtime.UnlockOSThread()
	}()
	return f()
}
