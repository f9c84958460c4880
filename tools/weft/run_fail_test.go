package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"weft/internal/build"
)

// endless runs three ranks that would not end by themselves, has them disturbed once data moves, and returns what was said.
func endless(t *testing.T, disturb func()) (status int, stderr string) {
	t.Helper()
	h, err := build.Host()
	if err != nil {
		t.Fatal(err)
	}
	var out, errOut said
	done := make(chan int, 1)
	go func() {
		done <- execute(t.Context(), []string{"run", "--local", "--host", h, "--plugin", ours(t), "--sizes", "8", "--iters", "1000000000"}, &out, &errOut)
	}()
	await(t, "a ring", func() bool { return strings.Contains(out.text(), ", 3 ranks, device") })
	disturb()
	select {
	case status = <-done:
	case <-time.After(time.Minute):
		t.Fatalf("the run goes on:\n%s%s", out.text(), errOut.text())
	}
	return status, errOut.text()
}

// hosts are the weft-host processes that this one has started.
func hosts(t *testing.T) (pids []int) {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range stats {
		text, err := os.ReadFile(path) // it may have ended
		if err != nil {
			continue
		}
		var pid, parent int
		var name, state string
		if n, _ := fmt.Sscan(string(text), &pid, &name, &state, &parent); n == 4 && name == "(weft-host)" && parent == os.Getpid() {
			pids = append(pids, pid)
		}
	}
	return pids
}

// A rank's process that a stranger kills is the cause; those that end with it are not, although weft kills them too.
func TestRunKilledRank(t *testing.T) {
	status, text := endless(t, func() {
		pids := hosts(t)
		if len(pids) != 3 {
			t.Fatalf("%d hosts", len(pids))
		}
		if err := syscall.Kill(pids[1], syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	})
	_, verdict, found := strings.Cut(text, "weft run: ")
	if status != 1 || !found || !strings.Contains(verdict, "look at rank ") || !strings.Contains(verdict, "OOM killer") || !strings.Contains(verdict, " ended with that") {
		t.Errorf("status %d, %s", status, text)
	}
	if strings.Count(verdict, "SIGKILL") != 1 {
		t.Errorf("more than one rank was killed:\n%s", verdict)
	}
}

func TestRunStopped(t *testing.T) {
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run(strconv.Itoa(int(s)), func(t *testing.T) {
			status, text := endless(t, func() {
				if err := syscall.Kill(os.Getpid(), s); err != nil {
					t.Fatal(err)
				}
			})
			name := map[syscall.Signal]string{syscall.SIGTERM: "SIGTERM", syscall.SIGINT: "SIGINT"}[s]
			if status != 1 || !strings.Contains(text, name+": ending every rank") || !strings.Contains(text, "the run was stopped; every rank has ended") {
				t.Errorf("status %d, %s", status, text)
			}
			if left := hosts(t); len(left) > 0 {
				t.Errorf("hosts live on: %v", left)
			}
		})
	}
}

// A library that never comes back from dlopen does not keep the run from being stopped.
func TestRunStoppedInLoad(t *testing.T) {
	stuck, err := build.Plugin("tools/host/testdata/stuck.c")
	if err != nil {
		t.Fatal(err)
	}
	h, err := build.Host()
	if err != nil {
		t.Fatal(err)
	}
	var errOut said
	done := make(chan int, 1)
	go func() {
		done <- execute(t.Context(), []string{"run", "--local", "--host", h, "--plugin", stuck, "--timeout", "1h"}, &said{}, &errOut)
	}()
	await(t, "a host that loads the library", func() bool {
		for _, pid := range hosts(t) {
			maps, _ := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid)) // it may not run yet
			if strings.Contains(string(maps), stuck) {
				return true
			}
		}
		return false
	})
	if err := syscall.Kill(os.Getpid(), syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	select {
	case status := <-done:
		if status != 1 || !strings.Contains(errOut.text(), "weft run: stopped by SIGINT") {
			t.Errorf("status %d, %s", status, errOut.text())
		}
	case <-time.After(time.Minute):
		for _, pid := range hosts(t) {
			_ = syscall.Kill(pid, syscall.SIGKILL) // or it stays
		}
		t.Fatalf("the run goes on: %s", errOut.text())
	}
}

// When rank 0 itself is lost, the other ranks of a launcher's job say so: nobody else will.
func TestRunLostRankZero(t *testing.T) {
	weft, h := programs(t)
	port := freePort(t)
	var cmds [3]*exec.Cmd
	var out, errOut [3]said
	for rank := range cmds {
		c := exec.Command(weft, "run", "--host", h, "--plugin", ours(t), "--sizes", "8", "--iters", "1000000000")
		c.Env = append(os.Environ(), fmt.Sprint("RANK=", rank), "WORLD_SIZE=3", "MASTER_ADDR=127.0.0.1", fmt.Sprint("MASTER_PORT=", port))
		c.Stdout, c.Stderr = &out[rank], &errOut[rank]
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		defer c.Process.Kill() // it has ended, unless the test fails
		cmds[rank] = c
	}
	await(t, "a ring", func() bool { return strings.Contains(out[0].text(), ", 3 ranks, device") })
	if err := cmds[0].Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for rank, c := range cmds {
		late := time.AfterFunc(time.Minute, func() { _ = c.Process.Kill() })
		_ = c.Wait() // its status is looked at below
		late.Stop()
		if rank == 0 {
			continue
		}
		_, verdict, _ := strings.Cut(errOut[rank].text(), "weft run: ")
		if c.ProcessState.ExitCode() != 1 || !strings.Contains(verdict, "look at rank 0 on 127.0.0.1: it is not heard of any more") {
			t.Errorf("rank %d: %v, %s", rank, c.ProcessState, errOut[rank].text())
		}
	}
}
