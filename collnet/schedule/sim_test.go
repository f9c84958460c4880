package schedule

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
)

// number is a type of element: how the simulation reads, adds and writes it.
type number struct {
	name      string
	elem, acc int
	add       func(a, b float64) float64
	get       func(b []byte, acc bool) float64
	put       func(b []byte, acc bool, v float64)
}

// Sums of int are exact. Those of float and half depend on their order: what is the same, bit for bit, was added in the
// same one. A half is the upper half of a float, truncated.
var (
	whole = number{"int64", 8, 8, func(a, b float64) float64 { return a + b },
		func(b []byte, _ bool) float64 { return float64(int64(binary.LittleEndian.Uint64(b))) },
		func(b []byte, _ bool, v float64) { binary.LittleEndian.PutUint64(b, uint64(int64(v))) }}
	float = number{"float32", 4, 4, add32,
		func(b []byte, _ bool) float64 { return get32(b) },
		func(b []byte, _ bool, v float64) { put32(b, v) }}
	half = number{"half", 2, 4, add32,
		func(b []byte, acc bool) float64 {
			if acc {
				return get32(b)
			}
			return get32([]byte{0, 0, b[0], b[1]})
		},
		func(b []byte, acc bool, v float64) {
			var wide [4]byte
			put32(wide[:], v)
			if acc {
				copy(b, wide[:])
			} else {
				copy(b, wide[2:])
			}
		}}
)

func add32(a, b float64) float64 { return float64(float32(a) + float32(b)) }
func get32(b []byte) float64 {
	return float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
}
func put32(b []byte, v float64) { binary.LittleEndian.PutUint32(b, math.Float32bits(float32(v))) }

// memory is a space of a rank: its bytes, and which of them hold something.
type memory struct {
	bytes   []byte
	written []bool
}

func newMemory(n int64, written bool) memory {
	m := memory{make([]byte, n), make([]bool, n)}
	for i := range m.written {
		m.written[i] = written
	}
	return m
}

func (m memory) at(off, n int64) memory { return memory{m.bytes[off : off+n], m.written[off : off+n]} }

// machine is a rank with its buffers.
type machine struct {
	op            Op
	num           number
	input, output memory
	base          int64 // of the output in the input, or the other way round, if they are one
}

// newMachine fills an input by what value says of the rank's elements, by their place in the whole operation.
func newMachine(op Op, num number, value func(rank int, i int64) float64) *machine {
	m := &machine{op: op, num: num}
	size := int64(op.Elem)
	off, part := op.part(op.Rank)
	small, large, first := part*size, op.window().Len*size, op.window().Off
	switch op.Kind {
	case AllReduce:
		m.input, m.output = newMemory(op.Count*size, true), newMemory(op.Count*size, false)
		first = 0
		if op.InPlace {
			m.output = m.input
		}
	case AllGather:
		m.input, m.output = newMemory(small, true), newMemory(large, false)
		first += off
		if op.InPlace {
			m.base = off * size
			m.input = m.output.at(m.base, small)
			for i := range m.input.written {
				m.input.written[i] = true
			}
		}
	case ReduceScatter:
		m.input, m.output = newMemory(large, true), newMemory(small, false)
		if op.InPlace {
			m.base = off * size
			m.output = m.input.at(m.base, small)
		}
	}
	for i := int64(0); i < int64(len(m.input.bytes))/size; i++ {
		num.put(m.input.bytes[i*size:], false, value(op.Rank, first+i))
	}
	return m
}

// run is a machine that runs a plan.
type run struct {
	*machine
	plan     Plan
	scratch  memory
	inFlight []Span // sends that may still read
	posted   []Span // receives that may write already
}

func (m *machine) start(p Plan) *run {
	r := &run{machine: m, plan: p, scratch: newMemory(p.Scratch, false)}
	for _, round := range p.Rounds {
		for _, v := range round.Recvs {
			if v.Early {
				r.posted = append(r.posted, v.Span)
			}
		}
	}
	return r
}

func (r *run) memory(s Span) (memory, error) {
	of := [...]memory{r.input, r.output, r.scratch}[s.Space]
	if s.Off < 0 || s.Len <= 0 || s.Off+s.Len > int64(len(of.bytes)) {
		return memory{}, fmt.Errorf("%+v of %d bytes", s, len(of.bytes))
	}
	return of.at(s.Off, s.Len), nil
}

// real is where a span lies, if the buffers are one.
func (r *run) real(s Span) Span {
	small := Output
	if r.op.Kind == AllGather {
		small = Input
	}
	if r.op.InPlace && s.Space == small {
		return Span{Input + Output - small, s.Off + r.base, s.Len}
	}
	return s
}

// meet reports whether two spans are of the same memory somewhere.
func (r *run) meet(a, b Span) bool {
	a, b = r.real(a), r.real(b)
	return a.Space == b.Space && a.Off < b.Off+b.Len && b.Off < a.Off+a.Len
}

func (r *run) read(s Span) (memory, error) {
	m, err := r.memory(s)
	if err != nil {
		return m, err
	}
	if i := slices.Index(m.written, false); i >= 0 {
		return m, fmt.Errorf("reads byte %d of %+v, which nobody wrote", i, s)
	}
	for _, p := range r.posted {
		if r.meet(p, s) {
			return m, fmt.Errorf("reads %+v while it receives %+v", s, p)
		}
	}
	return m, nil
}

func (r *run) write(s Span) (memory, error) {
	m, err := r.memory(s)
	for _, p := range r.inFlight {
		if r.meet(p, s) {
			return m, fmt.Errorf("writes %+v while %+v is being sent", s, p)
		}
	}
	for _, p := range r.posted {
		if r.meet(p, s) {
			return m, fmt.Errorf("writes %+v while it receives %+v", s, p)
		}
	}
	if err == nil {
		for i := range m.written {
			m.written[i] = true
		}
	}
	return m, err
}

// arrive takes a receive out of those that are posted, and writes it.
func (r *run) arrive(v Recv, bytes []byte) error {
	if v.Early {
		r.posted = slices.Delete(r.posted, slices.Index(r.posted, v.Span), slices.Index(r.posted, v.Span)+1)
	}
	m, err := r.write(v.Span)
	if err == nil {
		copy(m.bytes, bytes)
	}
	return err
}

// compute does what follows the receives.
func (r *run) compute(round Round) error {
	if round.Drain {
		r.inFlight = nil
	}
	for _, d := range round.Reduces {
		if err := r.reduce(d); err != nil {
			return err
		}
	}
	for _, c := range round.Copies {
		src, err := r.read(c.Src)
		if err != nil {
			return err
		}
		dst, err := r.write(c.Dst)
		if err != nil {
			return err
		}
		if copy(dst.bytes, src.bytes) != len(dst.bytes) || len(dst.bytes) != len(src.bytes) {
			return fmt.Errorf("copies %+v", c)
		}
	}
	return nil
}

func (r *run) reduce(d Reduce) error {
	size := func(acc bool) int {
		if acc {
			return r.num.acc
		}
		return r.num.elem
	}
	sums := make([]float64, d.Count)
	for k, s := range d.Src {
		src, err := r.read(s)
		if err != nil {
			return err
		}
		if len(src.bytes) != d.Count*size(d.SrcAcc) {
			return fmt.Errorf("reduces %d elements from %+v", d.Count, s)
		}
		if s.Off%int64(r.num.elem) != 0 {
			return fmt.Errorf("reduces from %+v, amid an element", s)
		}
		for i := range sums {
			if v := r.num.get(src.bytes[i*size(d.SrcAcc):], d.SrcAcc); k == 0 {
				sums[i] = v
			} else {
				sums[i] = r.num.add(sums[i], v)
			}
		}
	}
	dst, err := r.write(d.Dst)
	if err != nil {
		return err
	}
	if len(dst.bytes) != d.Count*size(d.DstAcc) || len(d.Src) == 0 {
		return fmt.Errorf("reduces %d elements to %+v", d.Count, d.Dst)
	}
	for i, v := range sums {
		r.num.put(dst.bytes[i*size(d.DstAcc):], d.DstAcc, v)
	}
	return nil
}

type message struct {
	from, to int
	bytes    []byte
}

// simulate has all ranks run their plans of one chunk, round by round. Sends are in flight until they are waited for.
func simulate(ranks []*run) error {
	rounds := 0
	for _, r := range ranks {
		rounds = max(rounds, len(r.plan.Rounds))
	}
	for i := range rounds {
		var sent []message
		for me, r := range ranks {
			if i >= len(r.plan.Rounds) {
				continue
			}
			for _, s := range r.plan.Rounds[i].Sends {
				m, err := r.read(s.Span)
				if err != nil {
					return fmt.Errorf("rank %d, round %d: sends: %w", me, i, err)
				}
				r.inFlight = append(r.inFlight, s.Span)
				sent = append(sent, message{me, s.To, slices.Clone(m.bytes)})
			}
		}
		for me, r := range ranks {
			if i >= len(r.plan.Rounds) {
				continue
			}
			for _, v := range r.plan.Rounds[i].Recvs {
				k := slices.IndexFunc(sent, func(m message) bool { return m.from == v.From && m.to == me })
				if k < 0 || int64(len(sent[k].bytes)) != v.Span.Len {
					return fmt.Errorf("rank %d, round %d: nobody sends %+v", me, i, v)
				}
				if err := r.arrive(v, sent[k].bytes); err != nil {
					return fmt.Errorf("rank %d, round %d: %w", me, i, err)
				}
				sent = slices.Delete(sent, k, k+1)
			}
			if err := r.compute(r.plan.Rounds[i]); err != nil {
				return fmt.Errorf("rank %d, round %d: %w", me, i, err)
			}
		}
		if len(sent) > 0 {
			return fmt.Errorf("round %d: nobody receives %d bytes of %d to %d", i, len(sent[0].bytes), sent[0].from, sent[0].to)
		}
	}
	return nil
}
