package suite

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"weft/internal/lab"
)

// Three machines, a cable between every two:
//
//	node0 eth0 ---- 192.168.100.0/24 ---- eth0 node1
//	node0 eth1 ---- 192.168.101.0/24 ---- eth0 node2
//	node1 eth1 ---- 192.168.102.0/24 ---- eth1 node2
func TestThreeMachines(t *testing.T) {
	l := boot(t, lab.Config{Nodes: 3})
	t.Run("perftest", func(t *testing.T) {
		noLeak(t, l.Nodes...)
		c := l.Cables[0]
		from, to := l.Nodes[c.Ends[0].Node], l.Nodes[c.Ends[1].Node]
		perftest(t, c.Ends, from, to, "ib_write_bw", "-n", "100", "-s", "65536")
		perftest(t, c.Ends, from, to, "ib_send_lat", "-n", "200", "-s", "8")
	})
	for _, c := range []struct {
		name, kind string
		carriers   []string
		meet       func(rank int) []string // how a rank finds rank 0, beside what its environment says
		env        []string
	}{
		{"RDMA, met by MASTER_ADDR", "RoCE", []string{"rxe0", "rxe1"}, func(int) []string { return nil }, nil},
		{"RDMA, met by --join", "RoCE", []string{"rxe0", "rxe1"}, func(rank int) []string { return joins(l, rank) }, nil},
		{"TCP, met by --join", "TCP", []string{"tcp"}, func(rank int) []string { return joins(l, rank) }, []string{"NCCL_IB_DISABLE=1", "WEFT_ZEROCOPY=1"}},
	} {
		t.Run("weft run on all: "+c.name, func(t *testing.T) { triangle(t, l, c.kind, c.carriers, c.meet, c.env) })
	}
	for _, c := range l.Cables {
		t.Run(fmt.Sprintf("weft run over cable %d", c.Number), func(t *testing.T) {
			noLeak(t, l.Nodes...)
			transfer(t, l, c, nil)
		})
	}
	t.Run("a silent blackhole", func(t *testing.T) {
		c := l.Cables[0]
		near, far := c.Ends[0], c.Ends[1]
		from, to := l.Nodes[near.Node], l.Nodes[far.Node]
		if err := to.Blackhole(far.NIC); err != nil {
			t.Fatal(err)
		}
		await(t, to, "PORT_ACTIVE", "ibv_devinfo", "-d", far.RDMA)
		for i, c := range pair(t, l, c, "--sizes", "8", "--timeout", "5s") {
			if o := <-c; o.err != nil || o.status != 1 {
				t.Errorf("rank %d: status %d, %v, want 1: nothing arrives\n%s", i, o.status, o.err, o.text())
			}
		}
		if err := to.Restore(far.NIC); err != nil {
			t.Fatal(err)
		}
		perftest(t, c.Ends, from, to, "ib_write_bw", "-n", "50", "-s", "4096")
	})
	t.Run("a killed program", func(t *testing.T) {
		c := l.Cables[2]
		from, to := l.Nodes[c.Ends[0].Node], l.Nodes[c.Ends[1].Node]
		noLeak(t, from, to)
		server := start(t, from, time.Minute, nil, "ib_write_bw", "-d", c.Ends[0].RDMA, "-x", "1", "-D", "60")
		await(t, from, ":18515", "ss", "-Hltn")
		client := start(t, to, time.Minute, nil, "ib_write_bw", "-d", c.Ends[1].RDMA, "-x", "1", "-D", "60", c.Ends[0].Addr)
		await(t, to, "ib_write_bw", "rdma", "resource", "show", "qp")
		must(t, from, time.Minute, "sh", "-c", "kill -9 $(cat /proc/[0-9]*/stat | awk '$2 == \"(ib_write_bw)\" {print $1}')")
		if o := <-server; o.err != nil || o.status != 128+9 {
			t.Errorf("the killed server: status %d, %v\n%s", o.status, o.err, o.text())
		}
		must(t, to, time.Minute, "sh", "-c", "kill -9 $(cat /proc/[0-9]*/stat | awk '$2 == \"(ib_write_bw)\" {print $1}') || true")
		if o := <-client; t.Failed() {
			t.Logf("its client: status %d, %v\n%s", o.status, o.err, o.text())
		}
	})
	// The last: a machine is lost.
	t.Run("a killed machine", func(t *testing.T) {
		c := l.Cables[2]
		from, to := l.Nodes[c.Ends[0].Node], l.Nodes[c.Ends[1].Node]
		noLeak(t, from)
		ranks := pair(t, l, c, "--sizes", "64K", "--iters", "1000000", "--timeout", "20s")
		await(t, from, "weft-host", "ps", "-eo", "comm")
		await(t, from, "ESTAB", "ss", "-Htn", "dst", c.Ends[1].Addr)
		to.Kill()
		if o := <-ranks[1]; o.err == nil {
			t.Errorf("a program on the killed machine ended with %d", o.status)
		}
		if o := <-ranks[0]; o.err != nil || o.status != 1 {
			t.Errorf("the other end: status %d, %v, want 1\n%s", o.status, o.err, o.text())
		}
	})
}

// triangle runs a rank on each of three machines, of which no subnet has all: each hop must find the cable that joins its ends,
// whichever device was asked for, with no word about interfaces or devices.
func triangle(t *testing.T, l *lab.Lab, kind string, carriers []string, meet func(rank int) []string, env []string) {
	noLeak(t, l.Nodes...)
	var before [3]int64
	sender := func(c lab.Cable) lab.End { // of the ring's hop that this cable carries
		if a, b := c.Ends[0], c.Ends[1]; (a.Node+1)%3 != b.Node {
			return b
		}
		return c.Ends[0]
	}
	for i, c := range l.Cables {
		before[i] = sent(t, l.Nodes[sender(c).Node], sender(c).RDMA)
	}
	var ends [3]<-chan *outcome
	for i, n := range l.Nodes {
		ends[i] = start(t, n, 2*time.Minute, append(env, patient), slices.Concat([]string{program(t), "run", "-v", "--sizes", "8,64K,1M", "--iters", "3"}, meet(i))...)
	}
	var text string // of rank 0, which tells of all
	for i, end := range ends {
		o := <-end
		right(t, i, o)
		overRDMA(t, o, 2, carriers...)
		if i == 0 {
			text = o.out.String()
		}
		if kind == "TCP" {
			uncopied(t, o)
		}
	}
	for i, c := range l.Cables {
		from := sender(c)
		if want := fmt.Sprintf("# rank %d -> %d: %s ", from.Node, (from.Node+1)%3, kind); strings.Count(text, want) != 1 {
			t.Errorf("rank 0 does not say %q once\n%s", want, text)
		}
		if kind != "TCP" {
			carried(t, l.Nodes[from.Node], from.RDMA, before[i], 4<<20)
		}
	}
	if !strings.Contains(text, "# all data right: ") {
		t.Errorf("rank 0 does not say that all data was right\n%s", text)
	}
}

// uncopied logs what a rank's kernel has sent from where it lay. The lab's cards cannot gather, so that packets which are not
// cut by the kernel itself are copied all the same.
func uncopied(t *testing.T, o *outcome) {
	t.Helper()
	if said := zeroCopy.FindString(o.out.String()); said != "" {
		t.Log(said)
	} else {
		t.Errorf("nothing is said of zero-copy at the end of a connection\n%s", o.text())
	}
}

var zeroCopy = regexp.MustCompile(`zero-copy: of \d+ bytes sent, \d+ were not copied.*`)

// joins are the flags by which a rank meets the others at an address of rank 0 that its own machine reaches.
func joins(l *lab.Lab, rank int) []string {
	for _, c := range l.Cables {
		if a, b := c.Ends[0], c.Ends[1]; a.Node == 0 && (rank == 0 || b.Node == rank) {
			return []string{"--rank", fmt.Sprint(rank), "--nranks", fmt.Sprint(len(l.Nodes)), "--join", a.Addr + ":29600"}
		}
	}
	return nil
}

// right wants data that was right.
func right(t *testing.T, rank int, o *outcome) {
	t.Helper()
	if o.err != nil || o.status != 0 {
		t.Errorf("rank %d: status %d, %v\n%s", rank, o.status, o.err, o.text())
	}
}

// pair starts weft run on both ends of a cable, and over that cable alone.
func pair(t *testing.T, l *lab.Lab, c lab.Cable, args ...string) [2]<-chan *outcome {
	return pairBy(t, l, c, c, nil, args...)
}

// pairBy starts weft run on both ends of a cable, which carries RDMA, while all that goes by TCP takes another one.
func pairBy(t *testing.T, l *lab.Lab, c, tcp lab.Cable, env []string, args ...string) [2]<-chan *outcome {
	var out [2]<-chan *outcome
	for i, e := range c.Ends {
		line := append([]string{program(t), "run", "-v", "--rank", fmt.Sprint(i), "--nranks", "2", "--join", tcp.Ends[0].Addr + ":29600"}, args...)
		both := []string{"NCCL_IB_HCA==" + e.RDMA, "NCCL_SOCKET_IFNAME==" + tcp.Ends[i].NIC}
		out[i] = start(t, l.Nodes[e.Node], 2*time.Minute, append(both, env...), line...)
	}
	return out
}

// oddSizes lie around what a packet, a lane's share and a message of the ring hold.
const oddSizes = "4,12,1020,4092,4096,4100,65532,131076,1M"

// transfer moves and checks flushed groups and odd sizes over a cable, and makes sure that RDMA carried them.
func transfer(t *testing.T, l *lab.Lab, c lab.Cable, env []string) {
	t.Helper()
	var before [2]int64
	for i, e := range c.Ends {
		before[i] = sent(t, l.Nodes[e.Node], e.RDMA)
	}
	for i, r := range pairBy(t, l, c, c, append([]string{"WEFT_FLUSH=always", patient}, env...), "--flush", "--sizes", oddSizes, "--iters", "3") {
		o := <-r
		right(t, i, o)
		overRDMA(t, o, 2, c.Ends[i].RDMA)
		if i == 0 && !strings.Contains(o.out.String(), "16 flushes had something to do") {
			t.Errorf("not every receive was flushed\n%s", o.text())
		}
		carried(t, l.Nodes[c.Ends[i].Node], c.Ends[i].RDMA, before[i], 4<<20) // of two ranks each sends every all-reduce once
	}
}

// perftest runs a program of perftest from one end of a cable to the other; it meets over TCP at the first end.
func perftest(t *testing.T, ends [2]lab.End, from, to *lab.Node, program string, args ...string) {
	t.Helper()
	// One machine has the other end's address itself, and reaches it only through a device.
	meet := ends[0].Addr
	if from == to {
		meet = "127.0.0.1"
	}
	line := func(e lab.End) []string { return append([]string{program, "-d", e.RDMA, "-x", "1", "-F"}, args...) }
	server := start(t, from, time.Minute, nil, line(ends[0])...)
	await(t, from, ":18515", "ss", "-Hltn")
	client := <-start(t, to, time.Minute, nil, append(line(ends[1]), meet)...)
	if client.err != nil || client.status != 0 {
		t.Errorf("%s client: status %d, %v\n%s", program, client.status, client.err, client.text())
	}
	if o := <-server; o.err != nil || o.status != 0 {
		t.Errorf("%s server: status %d, %v\n%s", program, o.status, o.err, o.text())
	}
	for line := range strings.Lines(client.out.String()) {
		if f := strings.Fields(line); len(f) > 3 && f[0][0] >= '1' && f[0][0] <= '9' {
			t.Logf("%s: %s", program, strings.TrimSpace(line))
		}
	}
}
