package nccl

import (
	"strings"
	"testing"
)

// without requires that all ranks have done their work over NCCL's own network, and that weft made no connection; its
// warnings are those that have said in them.
func without(t *testing.T, j Job, said string) {
	t.Helper()
	j.Ranks = 2
	run := start(t, j, "storm", "n=3")
	if err := run.Wait(); err != nil {
		t.Fatal(err)
	}
	for _, k := range run.Ranks {
		log, err := run.Log(k.Number)
		if err != nil {
			t.Fatal(err)
		}
		own, warned := 0, 0
		for _, l := range log {
			switch {
			case strings.Contains(l.Text, "[send] via NET/Socket/"):
				own++
			case !l.Ours():
			case l.Level == "WARN" && said != "" && strings.Contains(l.Text, said):
				warned++
			case l.Level == "WARN" || strings.Contains(l.Text, " over tcp") || strings.Contains(l.Text, " over sim"):
				t.Errorf("rank %d: %s %s", k.Number, l.Level, l.Text)
			}
		}
		if own == 0 || (warned > 0) != (said != "") {
			t.Errorf("rank %d: %d connections are of NCCL's own network, %q is said %d times", k.Number, own, said, warned)
		}
	}
}

// Where weft cannot start, for want of address space, its init says so, and NCCL goes on without it, for every further
// communicator too: nothing ends what was never begun.
func TestInitFails(t *testing.T) {
	each(t, func(t *testing.T, r Release) {
		without(t, Job{Release: r, Network: tcp(t, r), Wrap: []string{"prlimit", "--as=1200000000", "env", "-u", "NCCL_NET"}}, "weft needs")
	})
}

// Another network is asked for: some releases initialize the plugin before they compare names, and drop it again.
func TestAnotherNetworkIsAskedFor(t *testing.T) {
	each(t, func(t *testing.T, r Release) {
		if !r.Since(2, 10) {
			t.Skipf("%s does not know NCCL_NET", r)
		}
		without(t, Job{Release: r, Network: tcp(t, r), Env: []string{"NCCL_NET=Socket"}}, "")
	})
}

// The bootstrap's ring goes over the network: it has a listen, a send and a receive comm of its own in every communicator.
func TestBootstrapOverTheNetwork(t *testing.T) {
	overBoth(t, func(t *testing.T, j Job) {
		if !j.Release.Since(2, 23) {
			t.Skipf("%s has its bootstrap on sockets", j.Release)
		}
		j.Env = []string{"NCCL_OOB_NET_ENABLE=1"}
		peacefully(t, j, "storm", "n=3")
	})
}
