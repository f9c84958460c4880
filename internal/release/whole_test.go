package release

import (
	"testing"

	"weft/internal/ranks"
	"weft/internal/simverbs"
)

// TestRegisteredSend has the releases whose sender offers all of a registered
// buffer move one into receives of a step each.
func TestRegisteredSend(t *testing.T) {
	for _, r := range releases(t) {
		if !r.SendsWhole() {
			continue
		}
		t.Run(r.Release.Release, func(t *testing.T) {
			t.Parallel()
			o := simulated(t, simverbs.Device{Name: "sim0", PCI: "0000:81:00.0", GIDs: []string{"10.1.1.1/24"}})
			world(t, r, o, 2, func(p *Process, g ranks.Group) error {
				c, err := p.Init(1)
				if err != nil {
					return err
				}
				ring, err := c.Connect(g, 0)
				if err != nil {
					return err
				}
				for _, total := range []int64{8 << 20, 1<<20 + 12345, 1} {
					if err := ring.Whole(total); err != nil {
						return err
					}
				}
				if err := ring.Close(); err != nil {
					return err
				}
				return c.Destroy()
			})
		})
	}
}
