package conform

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"weft/internal/build"
	"weft/internal/host"
	"weft/internal/simverbs"
)

// simulated is what hosts need to find the devices, in a world of the test's own.
func simulated(t *testing.T, devices ...simverbs.Device) (env []string) {
	t.Helper()
	dist, err := simverbs.Dist()
	if err != nil {
		t.Fatal(err)
	}
	name := strings.NewReplacer("/", "-", ",", "").Replace(t.Name())
	w := simverbs.World{Name: fmt.Sprintf("%s-%d", name, os.Getpid()), Devices: devices}
	env, err = w.Env(dist, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Remove(); err != nil {
			t.Error(err)
		}
	})
	return env
}

// paths remembers by what the comms of all processes ran.
type paths struct {
	mu   sync.Mutex // protects what follows
	rdma int
	tcp  []string
}

func (p *paths) hear(l host.LogLine) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case strings.Contains(l.Text, "goes over TCP"):
		p.tcp = append(p.tcp, l.Text)
	case strings.Contains(l.Text, " over sim") && strings.Contains(l.Text, "GIDs"):
		p.rdma++
	}
}

// twoSubnets are two simulated devices.
func twoSubnets(t *testing.T) []string {
	return simulated(t,
		simverbs.Device{Name: "sim0", PCI: "0000:81:00.0", GIDs: []string{"10.101.0.1/24"}},
		simverbs.Device{Name: "sim1", PCI: "0000:82:00.0", GIDs: []string{"10.102.0.1/24"}},
	)
}

// TestLibraryOverRDMA requires every rule of a net table while the bytes travel by RDMA, on simulated devices in two
// subnets, and those of the newest table of each other family, whose own bytes travel nowhere. What tables differ in does
// not know how bytes travel, and TestLibrary has every one: here the first, the last that blocks and the newest stand for all.
func TestLibraryOverRDMA(t *testing.T) {
	env := twoSubnets(t)
	lib, err := build.Library()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range host.Families() {
		first, last := f.Versions()
		tables := []int{last}
		if f == host.FamilyNet {
			tables = []int{first, blocking, last}
		}
		for _, v := range tables {
			t.Run(fmt.Sprintf("%s_v%d", f, v), func(t *testing.T) {
				t.Parallel()
				if v == first && v != last && (testing.Short() || condition() != "") {
					t.Skip("v4 and the newest stand for all with -short and where the suite runs again")
				}
				var by paths
				keeps(t, Options{Lib: lib, Host: hostProgram(t), Strict: true, Env: env, Log: by.hear}, f, v)
				if f == host.FamilyNet && (by.rdma == 0 || len(by.tcp) > 0) {
					t.Errorf("%d comms by RDMA, others: %q", by.rdma, by.tcp)
				}
			})
		}
	}
}

// TestLibraryCollNetOverRDMA requires every rule of a collNet with devices while its bytes travel by RDMA.
func TestLibraryCollNetOverRDMA(t *testing.T) {
	env := append(twoSubnets(t), offersCollNet, "WEFT_CONNECT_TIMEOUT=10")
	lib, err := build.Library()
	if err != nil {
		t.Fatal(err)
	}
	first, last := host.FamilyColl.Versions()
	for _, v := range []int{first, last} {
		t.Run(fmt.Sprintf("v%d", v), func(t *testing.T) {
			t.Parallel()
			var by paths
			keeps(t, Options{Lib: lib, Host: hostProgram(t), Strict: true, Env: env, Log: by.hear}, host.FamilyColl, v)
			if by.rdma == 0 || len(by.tcp) > 0 {
				t.Errorf("%d comms by RDMA, others: %q", by.rdma, by.tcp)
			}
		})
	}
}
