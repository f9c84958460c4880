package tuner

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"weft/abi"
	"weft/collnet/choose"
	"weft/internal/report"
)

// log keeps what is said.
type log struct{ lines []string }

func (l *log) Warn(format string, a ...any) {
	l.lines = append(l.lines, "WARN "+fmt.Sprintf(format, a...))
}

func (l *log) Info(_ report.Subsys, format string, a ...any) {
	l.lines = append(l.lines, fmt.Sprintf(format, a...))
}

func (l *log) Trace(report.Subsys, string, ...any) {}

// between gains in all-reduces of a range of sizes, beside rings of LL in all of them, and in nothing else.
func between(from, to int64) Expect {
	return func(f abi.Func, bytes int64) []Times {
		t := Times{CollNet: 100}
		for a := range t.Otherwise {
			for p := range t.Otherwise[a] {
				if t.Otherwise[a][p] = 104; f == abi.FuncAllReduce && bytes >= from && bytes < to {
					t.Otherwise[a][p] = 105
				}
			}
		}
		if f == abi.FuncAllReduce {
			t.Otherwise[abi.NCCL_ALGO_RING][choose.LL] = 106
		}
		return []Times{t, {CollNet: 90, Otherwise: t.Otherwise}}
	}
}

func TestInit(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct {
		name   string
		off    bool
		table  int32 // 0: the newest
		nodes  uint64
		expect Expect
		full   bool
		kept   int
		say    string
	}{
		{name: "collNet is not wanted", off: true, nodes: 4, expect: between(0, mib)},
		{name: "one node", nodes: 1, expect: between(0, mib)},
		{name: "no costs", table: 2, nodes: 4, expect: between(0, mib), say: "nothing is vetoed, since tuners of NCCL 2.21"},
		{name: "an old one", table: 4, nodes: 4, expect: between(0, mib), kept: 1, say: "all-reduce below 1 MiB, all-gather never, reduce-scatter never, whatever NCCL would take instead; other sizes where it is 1.05 times as fast (by rule of thumb)"},
		{name: "small ones", nodes: 4, expect: between(0, mib), kept: 1, say: "CollNet on 4 nodes: all-reduce below 1 MiB,"},
		{name: "within a range", nodes: 2, expect: between(1000, mib), kept: 1, say: "all-reduce from 1 KiB to 1 MiB,"},
		{name: "large ones", nodes: 2, expect: between(mib, 1<<62), kept: 1, say: "all-reduce from 1 MiB,"},
		{name: "all", nodes: 2, expect: between(0, 1<<62), kept: 1, say: "all-reduce of any size,"},
		{name: "none", nodes: 2, expect: between(0, 0), kept: 1, say: "all-reduce never, all-gather never, reduce-scatter never,"},
		{name: "no room", nodes: 2, expect: between(0, 0), full: true, kept: 1, say: "WARN CollNet on 2 nodes: nothing is vetoed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var said log
			var kept []Vetoes
			var asked Comm
			var dropped []uintptr
			u := Tuner{
				Wanted: func() bool { return !c.off },
				Expect: func(comm Comm) (Expect, string) { asked = comm; return c.expect, "by rule of thumb" },
				Keep: func(v *Vetoes) uintptr {
					kept = append(kept, *v)
					if c.full {
						return 0
					}
					return 5
				},
				Drop: func(set uintptr) { dropped = append(dropped, set) },
				Log:  func(uintptr) (report.Logger, func()) { return &said, func() {} },
			}
			a := abi.TunerInitArgs{Table: c.table, Ctx: new(uintptr), CommId: 7, NRanks: 8, NNodes: c.nodes}
			if a.Table == 0 {
				a.Table = abi.TunerNewest
			}
			*a.Ctx = 99
			if err := u.Init(&a); err != nil {
				t.Fatal(err)
			}
			want := uintptr(0)
			if c.kept > 0 && !c.full {
				want = 5
			}
			if *a.Ctx != want || len(kept) != c.kept {
				t.Errorf("context %d, %d sets kept; want %d, %d", *a.Ctx, len(kept), want, c.kept)
			}
			if c.kept > 0 && asked != (Comm{ID: 7, Ranks: 8, Nodes: int(c.nodes), Table: int(a.Table)}) {
				t.Errorf("asked for %+v", asked)
			}
			if (len(said.lines) > 0) != (c.say != "") || len(said.lines) > 1 || !strings.Contains(strings.Join(said.lines, ""), c.say) {
				t.Errorf("says %q, want %q", said.lines, c.say)
			}
			if err := u.Finalize(&abi.TunerFinalizeArgs{Context: *a.Ctx}); err != nil || !slices.Equal(dropped, []uintptr{want}) {
				t.Errorf("%v; %v dropped, want %d", err, dropped, want)
			}
		})
	}
}

// A range of sizes is allowed as a whole, and only beside what is slower, with elements of every width.
func TestVetoes(t *testing.T) {
	v, _ := judge(between(1000, 1<<20))
	for f := range v {
		for a := range v[f] {
			for p := range v[f][a] {
				want := ^uint64(0)
				switch f {
				case int(abi.FuncAllReduce):
					if want &^= 1<<20 - 1<<10; a == abi.NCCL_ALGO_RING && p == int(choose.LL) {
						want = 0
					}
				case int(abi.FuncAllGather), int(abi.FuncReduceScatter):
				default:
					want = 0 // nobody has collNet do it
				}
				if v[f][a][p] != want {
					t.Errorf("function %d beside algorithm %d, protocol %d: %#x, want %#x", f, a, p, v[f][a][p], want)
				}
			}
		}
	}
}

func TestRanges(t *testing.T) {
	for set, want := range map[uint64]string{
		0: "never", ^uint64(0): "of any size", 1: "below 2 B", 1<<20 - 1<<3: "from 8 B to 1 MiB",
		^uint64(1<<40 - 1): "from 1 TiB", 0xff | 1<<63: "below 256 B and from 8 EiB", 6 | 0x30: "from 2 B to 8 B and from 16 B to 64 B",
	} {
		if got := ranges(set); got != want {
			t.Errorf("%#x: %q, want %q", set, got, want)
		}
	}
}
