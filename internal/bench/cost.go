package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"weft/internal/host"
	"weft/internal/rounds"
)

// tests measures what a test costs that finds nothing, and one that finds its request done.
func tests(c *config) error {
	for _, plugin := range c.plugins() {
		r, err := c.newRig(plugin)
		if err != nil {
			return err
		}
		err = testCost(c, r, filepath.Base(plugin))
		r.close()
		if err != nil {
			return err
		}
	}
	return nil
}

func testCost(c *config, r *rig, name string) error {
	// Both ends in one process: the loop calls them in turn.
	send, recv, err := connect(r.na, r.na, r.a, r.a)
	if err != nil {
		return err
	}
	buf, smh, err := buffer(r.a, r.na, send, 4096)
	if err != nil {
		return err
	}
	rmh, err := r.na.RegMr(recv, buf, 4096)
	if err != nil {
		return err
	}
	var idle, done []float64
	for range c.rounds {
		rep, err := r.a.Call("progress", "testcost", host.Args{"recv", recv, "send", send, "smh", smh, "rmh", rmh, "mh", smh, "buf", buf, "iters", 100_000})
		if err != nil {
			return err
		}
		idle, done = append(idle, rep.Float("idle")), append(done, rep.Float("done"))
	}
	fmt.Printf("  %-24s idle %8.1f ns   done %8.1f ns\n", name, rounds.Median(idle), rounds.Median(done))
	return nil
}

// weight measures what the library weighs and how long it takes to appear.
func weight(c *config) error {
	info, err := os.Stat(c.library())
	if err != nil {
		return err
	}
	fmt.Printf("  library %.2f MB\n", float64(info.Size())/1e6)
	var load, first []float64
	for range c.rounds {
		h, err := host.Start(host.Options{Bin: c.host(), Env: []string{"NCCL_SOCKET_IFNAME=" + c.iface}, Deadline: limit})
		if err != nil {
			return err
		}
		l, err := h.Call("main", "load", host.Args{"path", c.library()})
		if err == nil {
			_, err = h.Call("main", "bind", host.Args{"lib", l.Ptr("lib"), "family", "net", "version", host.FamilyNet.Newest()})
		}
		var i *host.Reply
		if err == nil {
			i, err = h.Call("main", "net.init", nil)
		}
		h.Kill()
		if err != nil {
			return err
		}
		load, first = append(load, l.Float("ns")/1e6), append(first, i.Float("ns")/1e6)
	}
	fmt.Printf("  dlopen %.2f ms, init %.2f ms\n", rounds.Median(load), rounds.Median(first))
	if err := exec.Command("go", "build", "-o", os.DevNull, "./gen").Run(); err != nil {
		return fmt.Errorf("go build ./gen: %w", err)
	}
	begin := time.Now()
	if out, err := exec.Command("go", "run", "./gen", "-check").CombinedOutput(); err != nil {
		return fmt.Errorf("go run ./gen -check: %w\n%s", err, out)
	}
	fmt.Printf("  regeneration of everything (and comparison) %.2f s\n", time.Since(begin).Seconds())
	return nil
}
