package main

import (
	"fmt"
	"os"
	"path/filepath"

	"weft/internal/simverbs"
)

// simulated makes a world of one simulated device, which reaches itself, and
// returns what processes need to live in it.
func (c *config) simulated() (env []string, remove func(), err error) { return c.simulatedAt(0) }

// simulatedAt has messages take so many microseconds more, one way.
func (c *config) simulatedAt(delay float64) (env []string, remove func(), err error) {
	dist := filepath.Join(c.dist, "simverbs")
	if _, err := os.Stat(filepath.Join(dist, "libibverbs.so.1")); err != nil {
		return nil, nil, fmt.Errorf("%w: make simverbs builds it", err)
	}
	return world(dist, delay)
}

func world(dist string, delay float64) (env []string, remove func(), err error) {
	w := simverbs.World{Name: fmt.Sprintf("bench-%d", os.Getpid()), Devices: []simverbs.Device{{Name: "sim0", GIDs: []string{"10.77.0.1/24"}, DelayUs: delay}}}
	env, err = w.Env(dist, "")
	// net_ib does not find GIDs by itself there; weft would take the same.
	return append(env, "NCCL_IB_GID_INDEX=1"), func() { _ = w.Remove() }, err
}

// lanesEnv asks for queue pairs, all of them from the start.
func lanesEnv(lanes int) []string {
	return []string{fmt.Sprintf("NCCL_IB_QPS_PER_CONNECTION=%d", lanes), "WEFT_LAZY=off"}
}
