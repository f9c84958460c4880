package transport

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"weft/internal/knob"
	"weft/internal/report"
	"weft/internal/simverbs"
	"weft/transport/device"
	"weft/transport/lanes"
	"weft/transport/route"
	"weft/transport/tcp"
	"weft/transport/verbs"
)

// simQPs bounds a simulated device: a comm that leaks its queue pairs soon
// leaves none.
const simQPs = 24

// simDirect is the path of simM's data-direct function below the world's sysfs.
const simDirect = "/devices/pci0000:85/0000:85:00.0"

// simWorld is the world of this process's simulated libibverbs:
//
//	simA --- 10.9.1.0/24 --- simB        simC --- 10.9.2.0/24 --- simD        simE: 10.9.3.0/24
//	simF -----/                          simI, simK --- InfiniBand --- simJ, simL
//	simG --- 10.9.4.0/24 --- simM        simX --- 10.9.5.0/24 --- simY
//	                               simZ, simV -----/
//	simR: 10.10.0.0/31 === routers === simT: 10.10.0.2/31, simS --- 10.9.6.0/24 --- simU, simW: 10.11.0.0/31
//
// simA, simB and simX have the same vendor's enhancements, simF another's, the
// others none; simC and simD have one partition more in common, at different
// places of their tables; simG takes no DMA-BUF, simM takes them on a path of their own too;
// simX, simY, simZ and simV are of mlx5, all but simZ with out-of-order receives.
var simWorld = sync.OnceValues(func() (simverbs.World, error) {
	w := simverbs.World{Name: fmt.Sprintf("transport-%d", os.Getpid()), Routes: []string{"10.10.0.0/16 10.10.0.0/16"}, Devices: []simverbs.Device{
		{Name: "simA", GIDs: []string{"10.9.1.1/24"}, MaxQP: simQPs, ECEVendor: 0x15b3, ECEOptions: 12},
		{Name: "simB", GIDs: []string{"10.9.1.2/24"}, MaxQP: simQPs, ECEVendor: 0x15b3, ECEOptions: 6},
		{Name: "simC", GIDs: []string{"10.9.2.1/24"}, MaxQP: simQPs, PKeys: []uint16{0xffff, 0x8111}},
		{Name: "simD", GIDs: []string{"10.9.2.2/24"}, MaxQP: simQPs, PKeys: []uint16{0xffff, 0x8222, 0x8111}},
		{Name: "simE", GIDs: []string{"10.9.3.1/24"}, MaxQP: simQPs},
		{Name: "simG", GIDs: []string{"10.9.4.1/24"}, MaxQP: simQPs, DMABuf: new(bool)},
		{Name: "simM", GIDs: []string{"10.9.4.2/24"}, MaxQP: simQPs, MLX5: true, DataDirect: simDirect},
		{Name: "simF", GIDs: []string{"10.9.1.6/24"}, MaxQP: simQPs, ECEVendor: 0x14e4, ECEOptions: 1},
		{Name: "simI", Link: "infiniband", MaxQP: simQPs},
		{Name: "simJ", Link: "infiniband", MaxQP: simQPs},
		{Name: "simK", Link: "infiniband", MaxQP: simQPs},
		{Name: "simL", Link: "infiniband", MaxQP: simQPs},
		{Name: "simX", GIDs: []string{"10.9.5.1/24"}, MaxQP: simQPs, MLX5: true, OOO: 512, ECEVendor: 0x15b3, ECEOptions: 8},
		{Name: "simY", GIDs: []string{"10.9.5.2/24"}, MaxQP: simQPs, MLX5: true, OOO: 512},
		{Name: "simZ", GIDs: []string{"10.9.5.3/24"}, MaxQP: simQPs, MLX5: true},
		{Name: "simR", GIDs: []string{"10.10.0.0/31"}, MaxQP: simQPs, Speed: 400_000},
		{Name: "simW", GIDs: []string{"10.11.0.0/31"}, MaxQP: simQPs, Speed: 400_000},
		{Name: "simS", GIDs: []string{"10.9.6.1/24"}, MaxQP: simQPs, Speed: 25_000},
		{Name: "simT", GIDs: []string{"10.10.0.2/31"}, MaxQP: simQPs, Speed: 400_000},
		{Name: "simU", GIDs: []string{"10.9.6.2/24"}, MaxQP: simQPs, Speed: 25_000},
		{Name: "simV", GIDs: []string{"10.9.5.4/24"}, MaxQP: simQPs, MLX5: true, OOO: 512},
	}}
	lib, err := w.Enter()
	if err != nil {
		return w, err
	}
	os.Setenv("NCCL_IBVERBS_LIB", lib)
	return w, nil
})

// startSim plays a process that sees the devices which hca lets through.
func startSim(t testing.TB, hca string, env map[string]string) *process {
	t.Helper()
	if _, err := simWorld(); err != nil {
		t.Fatal(err)
	}
	settings := map[string]string{"NCCL_IB_HCA": hca, "NCCL_IBVERBS_LIB": os.Getenv("NCCL_IBVERBS_LIB"), "WEFT_TIMEOUT": "2"}
	for k, v := range env {
		settings[k] = v
	}
	k := knob.Parse(settings)
	p := &process{log: &report.Recorder{}}
	provider, err := verbs.Open(verbs.Config{Knobs: k, Log: p.log})
	if err != nil {
		t.Fatal(err)
	}
	interfaces := []*tcp.Device{lo(1)}
	c, err := Open(Config{Knobs: k, Log: p.log, Code: testCode, Devices: device.Found(interfaces, provider), Interfaces: interfaces, Verbs: provider, Build: "test",
		afterFunc: p.alarms.set})
	if err != nil {
		t.Fatal(err)
	}
	p.Core, p.ctx = c, c.NewContext(ContextOptions{Table: aTable, TrafficClass: -1})
	p.hears()
	t.Cleanup(func() { c.Close(); provider.Close() }) // else its trials of a card that fails meet what later tests plan
	return p
}

// command injects faults into this process's world.
func command(t testing.TB, lines ...string) {
	t.Helper()
	w, err := simWorld()
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Control(os.Getpid(), lines...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, l := range lines {
			if u := undone(l); u != "" {
				if err := w.Control(os.Getpid(), u); err != nil {
					t.Error(err)
				}
			}
		}
	})
}

// undone is the command that takes back what outlives a test which ends early, and would make the next ones fail.
func undone(line string) string {
	w := append(strings.Fields(line), "", "")
	switch w[0] {
	case "fail":
		return "fail " + w[1] + " 1 EIO 0"
	case "slow":
		return "slow " + w[1] + " 0"
	case "link":
		return "link " + w[1] + " up"
	case "blackhole":
		return "blackhole " + w[1] + " off"
	}
	return ""
}

func overVerbs(c *Comm) bool { _, is := c.Carrier().(*lanes.Carrier); return is }

func TestSimCarriesData(t *testing.T) {
	for _, lanes := range []string{"1", "4"} {
		t.Run(lanes+" lanes", func(t *testing.T) {
			env := map[string]string{"NCCL_IB_QPS_PER_CONNECTION": lanes}
			a, b := startSim(t, "=simA", env), startSim(t, "=simB", env)
			for range 2 * simQPs / 4 { // more than the devices have queue pairs for at once
				s, r := pair(t, a, b)
				if !overVerbs(s) || !overVerbs(r) {
					t.Fatalf("TCP: %q %q", a.log.Lines(), b.log.Lines())
				}
				for _, size := range []int{0, 1, 127, 4096, 100_001, 1 << 20} {
					move(t, s, r, size)
				}
				if err := s.Close(); err != nil {
					t.Error(err)
				}
				if err := r.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// rested lets the connecting side of s try again at once what did not work: the time that it is left alone has passed.
func rested(s *Comm) { s.Member().Session.Ports = route.Known{} }

// What RDMA cannot do goes over TCP, says so, and leaves nothing behind.
func TestSimFallsBack(t *testing.T) {
	for _, c := range []struct {
		name          string
		hca           string // of the listening side
		break_, after []string
	}{
		{"no queue pair here", "=simB", []string{"fail create_qp 1 EIO"}, nil},
		{"no queue pair there", "=simB", []string{"fail create_qp 2 EIO"}, nil},
		{"no completion queue", "=simB", []string{"fail create_cq 1"}, nil},
		{"no memory", "=simB", []string{"fail reg_mr 1"}, nil},
		{"not to INIT", "=simB", []string{"fail modify_qp 1 EINVAL"}, nil},
		{"lost packets", "=simB", []string{"blackhole simB both"}, []string{"blackhole simB off"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, b := startSim(t, "=simA", nil), startSim(t, c.hca, nil)
			var s, r *Comm
			for range 3 {
				command(t, c.break_...)
				s, r = pair(t, a, b)
				command(t, c.after...)
				move(t, s, r, 100_000)
				s.Close()
				r.Close()
			}
			if a.log.Count("INFO", "goes over TCP") == 0 {
				t.Errorf("%q", a.log.Lines())
			}
			if slow := c.after != nil; slow != (a.log.Count("INFO", "it failed") == 2) {
				t.Errorf("a pair that costs time is tried once: %q", a.log.Lines())
			}
			rested(s)
			for range simQPs {
				s, r := pair(t, a, b)
				if !overVerbs(s) || !overVerbs(r) {
					t.Fatalf("something is left: %q", a.log.Lines())
				}
				s.Close()
				r.Close()
			}
		})
	}
}
