package release

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"weft/internal/ranks"
	"weft/internal/simverbs"
)

// TestPortsOfACard has each release that fuses make one device of a card's two
// ports, over two communicators and, where it unloads, over a further load: it
// is found where the release believes it, no port is counted twice, and data
// runs over it.
func TestPortsOfACard(t *testing.T) {
	for _, name := range []string{"2.24.3", "2.25.1", "2.26.6", "2.27.7", "2.28.3", "2.28.9", "2.30.7"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := simulated(t, simverbs.Device{Name: "sim0", PCI: "0000:81:00.0", Ports: []simverbs.Port{{GIDs: []string{"10.1.1.1/24"}}, {GIDs: []string{"10.1.2.1/24"}}}})
			world(t, find(t, name), o, 2, overTwoPorts)
		})
	}
}

// simulated adds a world of the test's own, with that device, to what setup gives.
func simulated(t *testing.T, d simverbs.Device) Options {
	t.Helper()
	dist, err := simverbs.Dist()
	if err != nil {
		t.Fatal(err)
	}
	w := simverbs.World{Name: fmt.Sprintf("%s-%d", strings.ReplaceAll(t.Name(), "/", "-"), os.Getpid()), Devices: []simverbs.Device{d}}
	env, err := w.Env(dist, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Remove(); err != nil {
			t.Error(err)
		}
	})
	o := setup(t)
	for _, kv := range env {
		if !strings.HasPrefix(kv, "LD_LIBRARY_PATH=") {
			o.Env = append(o.Env, kv)
		}
	}
	o.Env = append(o.Env, "NCCL_IBVERBS_LIB="+filepath.Join(dist, "libibverbs.so.1"))
	return o
}

func overTwoPorts(p *Process, g ranks.Group) error {
	for round := range uint64(2) {
		var comms []*Comm
		var rings []*Ring
		for i := range uint64(2) {
			c, err := p.Init(round*10 + i)
			if err != nil {
				return fmt.Errorf("round %d, communicator %d: %w", round, i, err)
			}
			if have := c.plug.nics; have.real != 2 || have.fused != 1 || c.Props[2].Name != "sim0+sim0:2" || !slices.Equal(c.Props[2].VDevs, []int64{0, 1}) || c.Props[1].NVDevs != 1 {
				return fmt.Errorf("round %d, communicator %d: %d devices and %d fused, the last is %+v", round, i, have.real, have.fused, c.Props[len(c.Props)-1])
			}
			ring, err := c.Connect(g, 2)
			if err != nil {
				return err
			}
			if err := ring.Reduce(300_000, int(i)); err != nil {
				return err
			}
			comms, rings = append(comms, c), append(rings, ring)
		}
		for i, c := range slices.Backward(comms) { // the one that loaded the library last: then it is unloaded
			if err := rings[i].Close(); err != nil {
				return err
			}
			if err := c.Destroy(); err != nil {
				return err
			}
		}
		if _, err := g.Gather(fmt.Sprint("round ", round), nil); err != nil {
			return err
		}
	}
	return nil
}
