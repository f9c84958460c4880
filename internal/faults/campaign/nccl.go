package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	release "weft/internal/nccl"
)

// nccl names the release whose ranks jobs are of, with the program NCCL.
const nccl = release.Env

// ncclJob is ranks of real NCCL on a simulated CUDA, whose all-reduces go around a ring.
type ncclJob struct {
	run  *release.Run
	dir  string
	done chan struct{}
	read chan struct{}
}

// released is the release of NCCL, if one was built.
func released() (r release.Release, some bool, err error) {
	all, err := release.Releases()
	if err != nil || len(all) == 0 {
		return r, false, err
	}
	return all[0], true, nil
}

func startNCCL(j *job) (program, error) {
	r, some, err := released()
	if err != nil || !some {
		return nil, errors.Join(err, fmt.Errorf("%s names no release: make nccl-host builds one", nccl))
	}
	network, err := release.TCP(r)
	if err != nil {
		return nil, err
	}
	env := append([]string{"NCCL_IB_DISABLE=0", "NCCL_DEBUG=WARN", "NCCL_ALGO=Ring", "NCCL_PROTO=Simple"}, j.env(0)...)
	run, err := release.Start(context.Background(), release.Job{
		Release: r, Network: network, Ranks: j.ranks, Env: env, Dir: j.dir, Wrap: []string{"sh", "-c", j.shell(), "sh"},
		Mode: []string{"traffic", "ops=allreduce", "size=1M", "abort=0", "late=" + filepath.Join(j.dir, "late")},
	})
	if err != nil {
		return nil, err
	}
	n := &ncclJob{run: run, dir: j.dir, done: make(chan struct{}), read: make(chan struct{})}
	for _, k := range run.Ranks {
		if _, err := k.Says("under way", patience); err != nil {
			run.Stop()
			return nil, err
		}
	}
	go n.follow(j)
	return n, nil
}

// shell starts the words behind it on the host of their rank, which is the second.
func (j *job) shell() string {
	prefix := ""
	for _, kv := range j.wires.env(0) {
		if strings.HasPrefix(kv, "WEFT_SIMVERBS_NODE=") {
			prefix = "WEFT_SIMVERBS_NODE=host$2; export WEFT_SIMVERBS_NODE; "
		}
	}
	return prefix + "exec " + strings.ReplaceAll(strings.Join(j.wrap(), " "), "%d", "$2") + ` "$@"`
}

// follow reads what ranks log.
func (n *ncclJob) follow(j *job) {
	defer close(n.read)
	seen := make([]int, len(n.run.Ranks))
	for tick := time.Tick(100 * time.Millisecond); ; {
		for i := range seen {
			log, err := n.run.Log(i)
			if err != nil {
				continue // it is not there yet
			}
			for _, l := range log[seen[i]:] {
				if l.Level == "WARN" {
					j.hear(i, l.Text)
				}
			}
			seen[i] = len(log)
		}
		select {
		case <-n.done:
			return
		case <-tick:
		}
	}
}

func (n *ncclJob) pid(rank int) int { return n.run.Ranks[rank].Cmd.Process.Pid }

func (n *ncclJob) late(rank int) error {
	return os.WriteFile(filepath.Join(n.dir, fmt.Sprintf("late.%d", rank)), nil, 0o600)
}

func (n *ncclJob) lag(int) error { return errors.New("kernels are played as fast as they can be") }

func (n *ncclJob) err() error { return nil }

func (n *ncclJob) stop() {
	close(n.done)
	<-n.read
	n.run.Stop()
}
