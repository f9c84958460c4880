package suite

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"weft/internal/lab"
)

// One machine, three cables from itself to itself, each a subnet:
//
//	rxa0 a0 ---- 192.168.100.0/24 ---- b0 rxb0
//	rxa1 a1 ---- 192.168.101.0/24 ---- b1 rxb1
//	rxa2 a2 ---- 192.168.102.0/24 ---- b2 rxb2
func TestOneMachine(t *testing.T) {
	l := boot(t, lab.Config{})
	n := l.Nodes[0]
	for _, c := range l.Cables[:2] {
		a, b := c.Ends[0], c.Ends[1]
		t.Run(fmt.Sprintf("verbs conformance on cable %d", c.Number), func(t *testing.T) {
			noLeak(t, n)
			o := <-start(t, n, 3*time.Minute, nil, simulated(t, "conform"), "--ends", a.RDMA+":1,"+b.RDMA+":1")
			judge(t, o)
		})
	}
	t.Run("a pulled cable", func(t *testing.T) {
		noLeak(t, n)
		a := l.Cables[2].Ends[0]
		devinfo := []string{"ibv_devinfo", "-d", a.RDMA}
		await(t, n, "PORT_ACTIVE", devinfo...)
		if err := n.Pull(a.NIC); err != nil {
			t.Fatal(err)
		}
		await(t, n, "PORT_DOWN", devinfo...)
		if err := n.Plug(a.NIC); err != nil {
			t.Fatal(err)
		}
		await(t, n, "PORT_ACTIVE", devinfo...)
		perftest(t, l.Cables[2].Ends, n, n, "ib_write_bw", "-n", "50", "-s", "65536")
	})
	// Every rule starts processes, which takes seconds on an emulated CPU: those that move data, in the groups and sizes there are.
	const rules = "conn.once,conn.again,data.,size.odd,size.large,group.,order.match,recv.,flush.,oversize.refused,close.order"
	for _, c := range []struct {
		device string
		abi    string
		rules  string
		env    []string
	}{
		{l.Cables[0].Ends[0].RDMA, "12", rules, nil},
		{l.Cables[1].Ends[1].RDMA, "8", "conn.once,conn.again,size.odd,size.large,group.,flush.", []string{"NCCL_IB_QPS_PER_CONNECTION=4", "WEFT_LAZY=off", "WEFT_FLUSH=always"}},
	} {
		t.Run("weft conform over "+c.device, func(t *testing.T) {
			noLeak(t, n)
			before := sent(t, n, c.device)
			o := <-start(t, n, 4*time.Minute, append(c.env, "NCCL_IB_HCA=="+c.device),
				program(t), "conform", "-v", "--abi", c.abi, "--patience", "60s", "--rule", c.rules, library(t))
			right(t, 0, o)
			overRDMA(t, o, 16, c.device)
			if n := strings.Count(o.out.String(), " of an earlier connection), "); n < 2 {
				t.Errorf("%d ends have queue pairs of an earlier connection, want those of conn.again\n%s", n, o.text())
			}
			carried(t, n, c.device, before, 16<<20)
		})
	}
	t.Run("weft run", func(t *testing.T) {
		noLeak(t, n)
		device := l.Cables[2].Ends[0].RDMA
		before := sent(t, n, device)
		o := <-start(t, n, 2*time.Minute, []string{"NCCL_IB_HCA==" + device}, program(t), "run", "--local", "-v", "--flush", "--sizes", "8,64K,1M", "--iters", "4")
		right(t, 0, o)
		overRDMA(t, o, 6, device)
		carried(t, n, device, before, 3*5*(1<<20)*4/3)
	})
	t.Run("weft run over two cables as one device", func(t *testing.T) {
		noLeak(t, n)
		var devices []string
		var before []int64
		for _, c := range l.Cables[:2] {
			devices = append(devices, c.Ends[0].RDMA)
			before = append(before, sent(t, n, c.Ends[0].RDMA))
		}
		o := <-start(t, n, 2*time.Minute, []string{"NCCL_IB_HCA==" + strings.Join(devices, ","), "NCCL_IB_ADAPTIVE_ROUTING=1", "WEFT_LAZY=off", "WEFT_FLUSH=always"},
			program(t), "run", "--local", "-v", "--flush", "--nranks", "2", "--device", strings.Join(devices, "+"), "--sizes", "8,64K,4M", "--iters", "2")
		right(t, 0, o)
		overRDMA(t, o, 4, devices...)
		for i, d := range devices {
			carried(t, n, d, before[i], 4<<20)
		}
	})
	t.Run("a traffic class", func(t *testing.T) { class(t, n, l.Cables[2]) })
	t.Run("a cable that carries no RDMA", func(t *testing.T) { // while TCP finds its way: two addresses of one machine
		noLeak(t, n)
		a, b := l.Cables[2].Ends[0], l.Cables[2].Ends[1]
		if err := n.Blackhole(b.NIC); err != nil {
			t.Fatal(err)
		}
		ends := both(t, n, l.Cables[2], nil, "--sizes", "8,64K", "--iters", "2")
		for i, end := range ends {
			o := <-end
			right(t, i, o)
			overRDMA(t, o, 2, "tcp")
			if !strings.Contains(o.out.String(), "goes over TCP, not by RDMA: ") {
				t.Errorf("rank %d does not say why it took TCP\n%s", i, o.text())
			}
		}
		if err := n.Restore(b.NIC); err != nil {
			t.Fatal(err)
		}
		for i, end := range both(t, n, l.Cables[2], nil, "--sizes", "8,64K", "--iters", "2") {
			o := <-end
			right(t, i, o)
			overRDMA(t, o, 2, []string{a.RDMA, b.RDMA}[i])
		}
	})
}

// both starts a rank on each end of a cable from a machine to itself.
func both(t *testing.T, n *lab.Node, c lab.Cable, env []string, args ...string) (ends [2]<-chan *outcome) {
	for i, e := range c.Ends {
		line := append([]string{program(t), "run", "-v", "--rank", fmt.Sprint(i), "--nranks", "2", "--join", "127.0.0.1:29600"}, args...)
		ends[i] = start(t, n, 2*time.Minute, append([]string{"NCCL_IB_HCA==" + e.RDMA, "NCCL_SOCKET_IFNAME==" + e.NIC}, env...), line...)
	}
	return ends
}
