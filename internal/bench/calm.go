package main

import (
	"time"

	"weft/internal/host"
	"weft/internal/rounds"
)

// calmly runs a round of these hosts until no other process disturbed it, within limits.
func calmly(hosts []*host.Host, round func() error) (disturbed bool, err error) {
	return rounds.Calmly(func() (sum time.Duration) {
		for _, h := range hosts {
			if st, err := h.Stat(); err == nil {
				sum += st.User + st.System
			}
		}
		return sum
	}, round)
}
