package nccl

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// owner is set in the process that TestRankDiesWithItsOwner kills.
const owner = "WEFT_TEST_RANK_OWNER"

func sleeper(t *testing.T) *Rank {
	t.Helper()
	k := &Rank{Cmd: exec.Command("sleep", "600")}
	k.more = sync.NewCond(&k.mu)
	if err := k.start(); err != nil {
		t.Fatal(err)
	}
	return k
}

// A rank of a process that has no time to stop it, as in the timeout of go test, ends all the same.
func TestRankDiesWithItsOwner(t *testing.T) {
	if os.Getenv(owner) != "" {
		fmt.Printf("rank %d\n", sleeper(t).Cmd.Process.Pid)
		select {}
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestRankDiesWithItsOwner$")
	cmd.Env = append(os.Environ(), owner+"=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid := 0
	for s := bufio.NewScanner(out); pid == 0 && s.Scan(); {
		fmt.Sscanf(s.Text(), "rank %d", &pid) // other lines are of the test's own
	}
	cmd.Process.Kill()
	_ = cmd.Wait() // it was killed
	if pid == 0 {
		t.Fatal("the owner has started no rank")
	}
	for end := time.Now().Add(patience); runs(pid); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the rank, process %d, runs %v after its owner was killed", pid, patience)
		}
	}
}

// The thread of who starts a rank may end before the rank does.
func TestRankOutlivesTheThreadThatAskedForIt(t *testing.T) {
	ranks := make(chan *Rank)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		ranks <- sleeper(t)
	}()
	k := <-ranks
	defer (&Run{Ranks: []*Rank{k}}).Stop()
	time.Sleep(200 * time.Millisecond) // for the thread to end
	if !runs(k.Cmd.Process.Pid) {
		t.Fatal("the rank has ended with the thread of who started it")
	}
}

// runs reports whether a process is there and not a zombie.
func runs(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(after, "Z") && !strings.HasPrefix(after, "X")
}
