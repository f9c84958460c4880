package nccl

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// make test-nccl RUN=TestRandomGroups takes them as TIME and SEED.
var (
	randomFor  = flag.Duration("for", 0, "how long TestRandomGroups goes on with fresh seeds, on each release and network")
	randomSeed = flag.Uint64("seed", 7, "the seed that TestRandomGroups begins with")
)

// Random groups on two communicators, their number of ranks and type of data by the seed too, which names the subtest.
func TestRandomGroups(t *testing.T) {
	overBoth(t, func(t *testing.T, j Job) {
		begun, rounds := time.Now(), 0
		for seed := *randomSeed; ; seed = rand.Uint64N(1 << 32) {
			j.Ranks = []int{2, 4, 5, 3}[seed%4]
			if j.Release.Since(2, 22) && !j.Release.Since(2, 23) && seed != 7 {
				j.Env = []string{"NCCL_MAX_NCHANNELS=1"} // it crashes where it spreads a group over two, over its own sockets too (seed 1999838812)
			}
			kind := []string{"f16", "f32", "u8", "i32"}[seed/4%4]
			if !t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
				peacefully(t, j, "random", "n=150", fmt.Sprintf("seed=%d", seed), "type="+kind)
			}) {
				return // its logs are kept
			}
			if rounds++; time.Since(begun) >= *randomFor {
				break
			}
		}
		t.Logf("%d rounds in %v", rounds, time.Since(begun).Round(time.Second))
	})
}
