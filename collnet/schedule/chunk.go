package schedule

// line is the alignment of shares and chunks in bytes, where there are enough elements.
const line = 64

// Chunk is the run of each part of an operation for which a plan is made. The
// parts are cut from the whole operation, never from a chunk, wherever the order
// of summation depends on them: so a result does not depend on the size of chunks.
type Chunk struct{ Off, Len int64 }

// Chunks cuts an operation, so that a chunk has about so many bytes of the large
// buffer. It has none if there is nothing to do.
func Chunks(op Op, a Algorithm, bytes int64) []Chunk {
	parts := op.parts(a)
	var longest int64
	for _, p := range parts {
		longest = max(longest, p.n)
	}
	if longest == 0 {
		return nil
	}
	units := max(bytes/line/int64(len(parts)), 1)
	n := (longest*int64(op.Elem) + units*line - 1) / (units * line)
	chunks := make([]Chunk, 0, n)
	for i := range n {
		if p := cut(longest, op.Elem, n, i); p.n > 0 {
			chunks = append(chunks, Chunk{p.off, p.n})
		}
	}
	return chunks
}

// piece is a run of elements of the large buffer. At is how many elements the
// pieces before it in its list have: its place where they are packed.
type piece struct{ off, n, at int64 }

// cut returns the i-th of so many pieces of a run, at lines if it has as many.
func cut(count int64, elem int, pieces, i int64) piece {
	unit := max(line/int64(elem), 1)
	units := (count + unit - 1) / unit
	from := min(units*i/pieces*unit, count)
	to := min(units*(i+1)/pieces*unit, count)
	return piece{off: from, n: to - from}
}

// shares cuts a run of an all-reduce for so many owners.
func shares(of piece, elem, owners int) []piece {
	all := make([]piece, owners)
	for i := range all {
		p := cut(of.n, elem, int64(owners), int64(i))
		all[i] = piece{off: of.off + p.off, n: p.n, at: p.off}
	}
	return all
}

// parts are what a chunk is a run of.
func (op Op) parts(a Algorithm) []piece {
	all := make([]piece, op.N)
	switch {
	case op.Kind != AllReduce:
		for r := range all {
			all[r].off, all[r].n = op.part(r)
		}
	case a == Ring || a == Rings:
		all = shares(piece{n: op.Count}, op.Elem, op.N) // where a sum begins depends on its owner
	default:
		all = []piece{{n: op.Count}}
	}
	if a != Rings && a != Matchings {
		return all
	}
	var halves []piece
	for _, p := range all {
		halves = append(halves, shares(p, op.Elem, 2)...)
	}
	return halves
}

// pieces are the runs of the parts that a chunk is.
func (op Op) pieces(a Algorithm, c Chunk) []piece {
	all := op.parts(a)
	var at int64
	for i, p := range all {
		skip := min(c.Off, p.n)
		all[i] = piece{p.off + skip, min(c.Len, p.n-skip), at}
		at += all[i].n
	}
	return all
}
