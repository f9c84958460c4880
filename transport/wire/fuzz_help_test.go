package wire

import "io"

// twoPart is a stream that arrives in two reads.
type twoPart [2][]byte

func (r *twoPart) Read(p []byte) (int, error) {
	for i := range r {
		if len(r[i]) > 0 {
			n := copy(p, r[i])
			r[i] = r[i][n:]
			return n, nil
		}
	}
	return 0, io.EOF
}
