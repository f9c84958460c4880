// Package schedule says what a rank sends, receives and reduces in a collective.
// Its functions are pure: every rank computes its own part from what all ranks
// know alike, so that both ends of each message agree on it.
package schedule

// Space is where a span lies.
type Space uint8

const (
	Input   Space = iota // what the caller sends
	Output               // where the caller wants the result
	Scratch              // memory of the operation
)

// Span is a run of bytes of a space.
type Span struct {
	Space Space
	Off   int64
	Len   int64
}

// Send is a message to another rank.
type Send struct {
	To   int
	Span Span
}

// Recv is a message of another rank. Its length is that of the send. Several of
// one rank in one round arrive in the order in which they are sent.
type Recv struct {
	From  int
	Span  Span
	Early bool // the span is free from the beginning: it may be posted before its round
}

// Reduce combines spans element by element, in the order of Src. Partial results
// that travel are kept in the accumulator's type (float for the types of 8 and
// 16 bits, the type itself for all others), so that a result is rounded once.
type Reduce struct {
	Dst    Span
	DstAcc bool // Dst is of the accumulator's type
	Src    []Span
	SrcAcc bool // all of Src are
	Count  int  // elements
}

// Copy moves bytes within a rank. The lengths are equal.
type Copy struct{ Dst, Src Span }

// Round is a step of a plan. Sends and receives are posted together; when the
// receives have completed, the reductions are done, then the copies, each in order.
// Both ends of a message have it in the round of the same number; a round in which
// a rank has nothing to do is empty.
type Round struct {
	Sends   []Send
	Recvs   []Recv
	Drain   bool // what is written next is still being sent: after the receives, wait for all sends so far
	Reduces []Reduce
	Copies  []Copy
}

// Plan is what one rank does for one chunk of an operation. It is done when the
// last round is, and every send has completed.
type Plan struct {
	Scratch int64 // bytes
	Rounds  []Round
}

// Parts is how many rounds, messages, reductions and copies the plan has, to which its size in memory is proportional.
func (p Plan) Parts() int {
	n := len(p.Rounds)
	for _, r := range p.Rounds {
		n += len(r.Sends) + len(r.Recvs) + len(r.Reduces) + len(r.Copies)
	}
	return n
}
