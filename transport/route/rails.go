package route

import (
	"fmt"

	"weft/transport/wire"
)

// OffRail lists which pairs join devices that differ in name or rail.
func OffRail(pairs []Pair, devices []wire.Device) (mixed []string) {
	for i := range pairs {
		p := &pairs[i]
		for _, d := range devices {
			if d.Index == p.PeerIndex && (d.Name != p.Local.Name || d.Rail != p.Local.RailID) {
				mixed = append(mixed, fmt.Sprintf("%s (rail %d) here and %s (rail %d) there", p.Local.Name, p.Local.RailID, d.Name, d.Rail))
			}
		}
	}
	return mixed
}
