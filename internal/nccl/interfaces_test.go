package nccl

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
)

// A container's interfaces are no cards: NCCL must find a path to each, as to those of its own sockets, and may make no device
// of several.
func TestInterfacesWithoutCards(t *testing.T) {
	each(t, func(t *testing.T, r Release) {
		ns := fmt.Sprintf("weft-nccl-%d", os.Getpid())
		ip := func(words ...string) {
			t.Helper()
			if out, err := exec.Command("ip", words...).CombinedOutput(); err != nil {
				t.Fatalf("ip %v: %v %s", words, err, out)
			}
		}
		if out, err := exec.Command("ip", "netns", "add", ns).CombinedOutput(); err != nil {
			t.Skipf("no networks of one's own here: %v %s", err, out)
		}
		t.Cleanup(func() { exec.Command("ip", "netns", "del", ns).Run() })
		ip("-n", ns, "link", "set", "lo", "up")
		for i := range 3 {
			ip("-n", ns, "link", "add", fmt.Sprintf("eth%d", i), "type", "veth", "peer", "name", fmt.Sprintf("port%d", i))
			ip("-n", ns, "addr", "add", fmt.Sprintf("10.82.%d.1/24", i), "dev", fmt.Sprintf("eth%d", i))
			ip("-n", ns, "link", "set", fmt.Sprintf("eth%d", i), "up")
			ip("-n", ns, "link", "set", fmt.Sprintf("port%d", i), "up")
		}
		run := start(t, Job{Release: r, Network: tcp(t, r), Ranks: 2, Wrap: []string{"ip", "netns", "exec", ns},
			Env: []string{"NCCL_SOCKET_IFNAME==eth0,eth1,eth2", "NCCL_DEBUG_SUBSYS=INIT,NET"}}, "sizes", "ops=allreduce", "max=1M", "step=16", "rounds=2")
		if err := run.Wait(); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"using [0]eth0:10.82.0.1 [1]eth1:10.82.1.1 [2]eth2:10.82.2.1", " over tcp"} {
			if len(ours(t, run, 0, want)) == 0 {
				t.Errorf("%q is not said", want)
			}
		}
	})
}
