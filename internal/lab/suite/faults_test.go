package suite

import (
	"strings"
	"testing"
	"time"

	"weft/internal/lab"
)

// Two machines, two cables: what breaks the first leaves the second, which carries all that goes by TCP, or takes both.
//
//	node0 eth0 ---- 192.168.100.0/24 ---- eth0 node1
//	node0 eth1 ---- 192.168.101.0/24 ---- eth1 node1
func TestTwoMachines(t *testing.T) {
	l := boot(t, lab.Config{Nodes: 2, Cables: 2})
	for _, c := range l.Cables {
		t.Run("four queue pairs on "+c.Ends[0].RDMA, func(t *testing.T) {
			noLeak(t, l.Nodes...)
			transfer(t, l, c, []string{"NCCL_IB_QPS_PER_CONNECTION=4", "WEFT_LAZY=off"})
		})
	}
	t.Run("a peer stopped for longer than a silence may last", func(t *testing.T) { // its card still answers: nothing has failed
		noLeak(t, l.Nodes...)
		c := l.Cables[0]
		ends := underWay(t, l, c, c, "200")
		must(t, l.Nodes[1], time.Minute, "sh", "-c", "kill -STOP "+hosts+"; sleep 12; kill -CONT "+hosts)
		for i, end := range ends {
			o := <-end
			right(t, i, o)
			overRDMA(t, o, 2, c.Ends[i].RDMA)
		}
	})
	c, other := l.Cables[0], l.Cables[1]
	near, far := c.Ends[0], c.Ends[1]
	from, to := l.Nodes[near.Node], l.Nodes[far.Node]
	try := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []struct {
		name      string
		tcp       lab.Cable
		cut, mend func(t *testing.T)
		killed    int // the rank that cannot say anything, or -1
	}{
		{"a pulled cable", other, func(t *testing.T) { try(from.Pull(near.NIC)) }, func(t *testing.T) { try(from.Plug(near.NIC)) }, -1},
		{"a cable pulled at the far end", other, func(t *testing.T) { try(to.Pull(far.NIC)) }, func(t *testing.T) { try(to.Plug(far.NIC)) }, -1},
		{"a blackhole for RDMA alone", other, func(t *testing.T) { try(to.Blackhole(far.NIC)) }, func(t *testing.T) { try(to.Restore(far.NIC)) }, -1},
		{"a blackhole for everything", c, func(t *testing.T) { try(to.Blackhole(far.NIC)) }, func(t *testing.T) { try(to.Restore(far.NIC)) }, -1},
		{"a killed peer", other, func(t *testing.T) { must(t, to, time.Minute, "sh", "-c", killWeft) }, func(*testing.T) {}, 1},
	} {
		t.Run(f.name+" under way", func(t *testing.T) {
			noLeak(t, l.Nodes...)
			ends := underWay(t, l, c, f.tcp, "1000000")
			f.cut(t)
			began := time.Now()
			for i, end := range ends {
				o := <-end
				if i == f.killed {
					if o.err != nil || o.status != 128+9 {
						t.Errorf("the killed rank %d: status %d, %v", i, o.status, o.err)
					}
					continue
				}
				t.Logf("rank %d ended after %.1f s: %s", i, time.Since(began).Seconds(), causeOf(o))
				if o.err != nil || o.status != 1 {
					t.Errorf("rank %d: status %d, %v, want 1\n%s", i, o.status, o.err, o.text())
				}
				overRDMA(t, o, 2, c.Ends[i].RDMA)
				if causeOf(o) == "" {
					t.Errorf("rank %d: the library did not say that the connection failed\n%s", i, o.text())
				}
			}
			f.mend(t)
			for i, end := range pairBy(t, l, c, other, nil, "--sizes", "8,64K", "--iters", "2") {
				o := <-end
				right(t, i, o)
				overRDMA(t, o, 2, c.Ends[i].RDMA)
			}
		})
	}
}

// underWay starts weft run on both ends of a cable and returns when data is on its way.
func underWay(t *testing.T, l *lab.Lab, c, tcp lab.Cable, iters string, env ...string) [2]<-chan *outcome {
	t.Helper()
	n, device := l.Nodes[c.Ends[0].Node], c.Ends[0].RDMA
	before := sent(t, n, device)
	ends := pairBy(t, l, c, tcp, env, "--sizes", "256K", "--iters", iters)
	for until := time.Now().Add(time.Minute); sent(t, n, device) < before+500; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatal("the ranks send nothing by RDMA")
		}
	}
	return ends
}

// hosts are the processes of a machine that have loaded the library. killWeft kills them with their runners at once, so that
// only the kernel can tell the other end.
const (
	hosts    = `$(cat /proc/[0-9]*/stat | awk '$2 == "(weft-host)" {print $1}')`
	killWeft = `kill -9 $(cat /proc/[0-9]*/stat | awk '$2 == "(weft)" || $2 == "(weft-host)" {print $1}')`
)

// causeOf is the first failure of a connection that the library reported; that a port went down is none by itself.
func causeOf(o *outcome) string {
	for line := range strings.Lines(o.out.String()) {
		if _, text, ok := strings.Cut(line, " WARN "); ok && strings.Contains(text, "NET/weft") && !strings.Contains(text, "the link went down") {
			return strings.TrimSpace(text)
		}
	}
	return ""
}
