package tuner

import (
	"fmt"
	"slices"
	"strings"

	"weft/abi"
	"weft/collnet/choose"
)

// gain is how much faster collNet must be than what NCCL would take otherwise: the model is not exact, and NCCL's own
// algorithms cost the host's processors less.
const gain = 1.05

// Alternatives are NCCL's algorithms that the model knows, the tree and the ring, each with its protocols.
const Alternatives = abi.NCCL_ALGO_RING + 1

// Vetoes says, for each collective and for each algorithm and protocol that NCCL
// would take otherwise, for which sizes what goes through collNet is forbidden: bit
// k is 2^k bytes up to twice that. It is struct weft_vetoes of plugin/tune.h.
type Vetoes [abi.FuncAllReduce + 1][Alternatives][choose.Protocols]uint64

// collectives are those that NCCL gives to collNet.
var collectives = [...]struct {
	f    abi.Func
	name string
}{{abi.FuncAllReduce, "all-reduce"}, {abi.FuncAllGather, "all-gather"}, {abi.FuncReduceScatter, "reduce-scatter"}}

// sizes bounds what is asked of a model: beyond 2^sizes bytes it is as there.
const sizes = 40

// judge vetoes CollNet for every range of sizes at whose ends it gains too little,
// and says what is allowed beside every alternative.
func judge(expect Expect) (*Vetoes, string) {
	v := new(Vetoes)
	var said []string
	for _, c := range collectives {
		var worth [sizes]allowed
		for k := range worth {
			worth[k] = worthOf(slices.Concat(expect(c.f, 1<<k), expect(c.f, 2<<k-1)))
		}
		sure := ^uint64(0)
		for a := range Alternatives {
			for p := range choose.Protocols {
				set := uint64(0)
				for k := range worth {
					if worth[k][a][p] {
						set |= 1 << k
					}
				}
				if worth[sizes-1][a][p] {
					set |= ^uint64(1<<sizes - 1)
				}
				v[c.f][a][p] = ^set
				sure &= set
			}
		}
		said = append(said, c.name+" "+ranges(sure))
	}
	return v, strings.Join(said, ", ")
}

// allowed are the alternatives beside which collNet gains enough.
type allowed [Alternatives][choose.Protocols]bool

// worthOf holds collNet against the alternatives; all of the times must gain enough.
func worthOf(all []Times) (w allowed) {
	for a := range w {
		for p := range w[a] {
			w[a][p] = !slices.ContainsFunc(all, func(t Times) bool {
				return float64(t.Otherwise[a][p]) < gain*float64(t.CollNet)
			})
		}
	}
	return w
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
