package tuner

import (
	"fmt"
	"math"
	"strings"

	"weft/abi"
)

// gain is how much faster than NCCL's ring collNet must be: the model is not exact,
// and a ring costs the host's processors less.
const gain = 1.05

// Vetoes says, for each collective and algorithm, which sizes it is forbidden for:
// bit k is 2^k bytes up to twice that. It is struct weft_vetoes of plugin/tune.h.
// What the cabling cannot carry will be vetoed through it, too.
type Vetoes [abi.FuncAllReduce + 1][abi.NCCL_ALGO_PAT + 1]uint64

// offloaded are the algorithms that go through collNet between nodes. On several
// nodes NVLS does; its tree does not.
var offloaded = [...]int{abi.NCCL_ALGO_COLLNET_DIRECT, abi.NCCL_ALGO_COLLNET_CHAIN, abi.NCCL_ALGO_NVLS}

// collectives are those that NCCL gives to collNet.
var collectives = [...]struct {
	f    abi.Func
	name string
}{{abi.FuncAllReduce, "all-reduce"}, {abi.FuncAllGather, "all-gather"}, {abi.FuncReduceScatter, "reduce-scatter"}}

// sizes bounds what is asked of a model: beyond 2^sizes bytes it is as there.
const sizes = 40

// judge vetoes CollNet for every range of sizes at whose ends it gains too little,
// and says what is allowed.
func judge(expect Expect) (*Vetoes, string) {
	v := new(Vetoes)
	var said []string
	for _, c := range collectives {
		allowed := uint64(0)
		for k := range sizes {
			if worth(expect, c.f, 1<<k) && worth(expect, c.f, 2<<k-1) {
				allowed |= 1 << k
			}
		}
		if allowed>>(sizes-1) != 0 {
			allowed |= math.MaxUint64 &^ (1<<sizes - 1)
		}
		for _, a := range offloaded {
			v[c.f][a] = ^allowed
		}
		said = append(said, c.name+" "+ranges(allowed))
	}
	return v, strings.Join(said, ", ")
}

func worth(expect Expect, f abi.Func, bytes int64) bool {
	ours, ring := expect(f, bytes)
	return float64(ring) >= gain*float64(ours)
}

// ranges says which sizes a set has: "from 4 KiB up to 1 MiB".
func ranges(set uint64) string {
	var all []string
	for k := 0; k < 64; k++ {
		if set>>k&1 == 0 {
			continue
		}
		from := k
		for k < 64 && set>>k&1 != 0 {
			k++
		}
		switch {
		case from == 0 && k == 64:
			return "of any size"
		case k == 64:
			all = append(all, "from "+size(from))
		case from == 0:
			all = append(all, "below "+size(k))
		default:
			all = append(all, "from "+size(from)+" to "+size(k))
		}
	}
	if all == nil {
		return "never"
	}
	return strings.Join(all, " and ")
}

// size spells 2^k bytes.
func size(k int) string {
	return fmt.Sprintf("%d %s", 1<<(k%10), []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}[k/10])
}
