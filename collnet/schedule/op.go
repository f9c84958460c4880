package schedule

import "fmt"

// Kind is what a collective does.
type Kind uint8

const (
	AllReduce     Kind = iota // Input and Output are Count elements
	AllGather                 // Input is Count elements, Output those of all ranks
	ReduceScatter             // Input is a part of Count elements for each rank, Output the own one
)

func (k Kind) String() string {
	return name([]string{"all-reduce", "all-gather", "reduce-scatter"}, int(k))
}

// Op is a collective, as one rank sees it. What is not marked as its own is the same on all ranks.
type Op struct {
	Kind  Kind
	N     int // ranks
	Rank  int // its own
	Count int64
	Elem  int // bytes of an element
	Acc   int // bytes of an element of the accumulator's type
	// Window is the run that an all-gather or a reduce-scatter is about, of the
	// parts of all ranks one after the other; zero: all of them. The large buffer
	// begins where the window does, the small one where the own part begins in it.
	Window Window
	// InPlace says that the rank's buffers are one: the same memory, or the small
	// one at its place in the large one. It is the rank's own; it changes when the
	// rank waits, and nothing that others see.
	InPlace bool
}

// Window is a run of elements.
type Window struct{ Off, Len int64 }

// Algorithm is how a collective is done.
type Algorithm uint8

const (
	OneShot   Algorithm = iota // everybody sends all to everybody, and reduces in rank order
	Doubling                   // pairs exchange partial sums of all; any number of ranks
	Direct                     // each share goes to its owner, who reduces in rank order; the result goes to all
	Halving                    // pairs exchange partial sums of halves, then results of halves; any number of ranks
	Ring                       // shares travel along an order of the ranks: partial sums, then results
	Rings                      // a ring each way
	Matchings                  // on a ring of four: two halves by Halving, over opposite cables
	algorithms
)

func (a Algorithm) String() string {
	return name([]string{"one-shot", "doubling", "direct", "halving", "ring", "rings", "matchings"}, int(a))
}

// Does reports whether an algorithm has plans for a kind and a number of ranks.
func (a Algorithm) Does(k Kind, ranks int) bool {
	switch a {
	case OneShot, Doubling:
		return k == AllReduce
	case Matchings:
		return k == AllReduce && ranks == 4
	}
	return a < algorithms && k <= ReduceScatter
}

func name(names []string, i int) string {
	if i < len(names) {
		return names[i]
	}
	return fmt.Sprint(i)
}

// window is Window, or all.
func (op Op) window() Window {
	if op.Window == (Window{}) {
		return Window{0, int64(op.N) * op.Count}
	}
	return op.Window
}

// part is what a rank has of the window: where it begins in the large buffer, and its length.
func (op Op) part(rank int) (off, n int64) {
	w := op.window()
	inside := func(i int64) int64 { return min(max(i-w.Off, 0), w.Len) }
	off = inside(int64(rank) * op.Count)
	return off, inside(int64(rank+1)*op.Count) - off
}

func (op Op) check() error {
	switch {
	case op.N < 1 || op.Rank < 0 || op.Rank >= op.N:
		return fmt.Errorf("rank %d of %d", op.Rank, op.N)
	case op.Count < 0:
		return fmt.Errorf("%d elements", op.Count)
	case op.Elem < 1 || op.Acc < op.Elem:
		return fmt.Errorf("elements of %d bytes, accumulated in %d", op.Elem, op.Acc)
	}
	if w := op.window(); op.Kind != AllReduce && (w.Off < 0 || w.Len < 0 || w.Off+w.Len > int64(op.N)*op.Count) {
		return fmt.Errorf("a window of %d elements from %d on, of %d parts of %d", w.Len, w.Off, op.N, op.Count)
	}
	return nil
}
