package host_test

import (
	"encoding/binary"
	"math"
	"testing"

	"weft/internal/host"
)

// floats are the formats below float32, by the bits of their exponent and fraction.
var floats = map[host.DataType]struct{ exponent, fraction int }{6: {5, 10}, 7: {8, 23}, 9: {8, 7}, 10: {4, 3}, 11: {5, 2}}

// number is what an element means, computed otherwise than the host does.
func number(t host.DataType, b []byte) float64 {
	if t == 8 {
		return math.Float64frombits(binary.LittleEndian.Uint64(b))
	}
	f := floats[t]
	var bits uint64
	for i := range int(t.Size()) {
		bits |= uint64(b[i]) << (8 * i)
	}
	sign := bits >> (f.exponent + f.fraction) << 63
	exponent := bits >> f.fraction & (1<<f.exponent - 1)
	if exponent == 0 {
		return 0 // the host makes no other subnormal
	}
	return math.Float64frombits(sign | (exponent-1<<(f.exponent-1)+1+1023)<<52 | bits&(1<<f.fraction-1)<<(52-f.fraction))
}

// nearest is the element whose number is nearest to x.
func nearest(t host.DataType, x float64) []byte {
	size := int(t.Size())
	b := make([]byte, 8)
	if t == 8 {
		binary.LittleEndian.PutUint64(b, math.Float64bits(x))
		return b
	}
	f := floats[t]
	near, off := uint64(0), math.Inf(1)
	if t == 7 {
		binary.LittleEndian.PutUint32(b, math.Float32bits(float32(x)))
		return b[:size]
	}
	for bits := range uint64(1) << (8 * size) {
		e := bits >> f.fraction & (1<<f.exponent - 1)
		if e == 1<<f.exponent-1 { // this test needs none of them
			continue
		}
		binary.LittleEndian.PutUint64(b, bits)
		if d := math.Abs(number(t, b) - x); d < off {
			near, off = bits, d
		}
	}
	binary.LittleEndian.PutUint64(b, near)
	return b[:size]
}

// TestValues has results that are computed here judged by the host: right ones, and ones that are off by more than all roundings.
func TestValues(t *testing.T) {
	h := start(t, host.Options{})
	const ranks, count = 3, 40
	at, err := h.Alloc(4096)
	if err != nil {
		t.Fatal(err)
	}
	for typ := range host.DataTypes {
		for op := range host.RedOps {
			v := host.Values{Type: host.DataType(typ), Op: host.RedOp(op), Ranks: ranks, Seed: 5, OfRank: host.All}
			size := v.Type.Size()
			var in [ranks][]byte
			for k := range in {
				if err := h.FillValues(at, v, k, 0, count); err != nil {
					t.Fatal(err)
				}
				if in[k], err = h.Read(at, size*count); err != nil {
					t.Fatal(err)
				}
				of := v
				of.OfRank = k
				if _, err := h.CheckValues(at, of, 0, count); err != nil {
					t.Errorf("%v %v, rank %d's own values: %v", v.Type, v.Op, k, err)
				}
			}
			out := make([]byte, 0, size*count)
			for i := range int64(count) {
				element := func(k int) []byte { return in[k][i*size : (i+1)*size] }
				out = append(out, reduced(v.Type, v.Op, element)...)
			}
			if err := h.Write(at, out); err != nil {
				t.Fatal(err)
			}
			ulp, err := h.CheckValues(at, v, 0, count)
			if err != nil || ulp > 0.5001 && v.Type != 8 { // doubles are rounded twice here
				t.Errorf("%v %v: off by %v units of the last place (%v)", v.Type, v.Op, ulp, err)
			}
			out[7*size+size-1] ^= 0x40 // the sign of an integer's half, or an exponent
			if err := h.Write(at, out); err != nil {
				t.Fatal(err)
			}
			if _, err := h.CheckValues(at, v, 0, count); err == nil {
				t.Errorf("%v %v: a wrong element passes", v.Type, v.Op)
			}
		}
	}
}

func reduced(t host.DataType, op host.RedOp, element func(k int) []byte) []byte {
	if _, small := floats[t]; small || t == 8 {
		x := number(t, element(0))
		for k := 1; k < 3; k++ {
			y := number(t, element(k))
			x = map[host.RedOp]float64{host.Sum: x + y, host.Prod: x * y, host.Max: max(x, y), host.Min: min(x, y)}[op]
		}
		return nearest(t, x)
	}
	read := func(k int) (n int64) {
		b := element(k)
		for i, c := range b {
			n |= int64(c) << (8 * i)
		}
		if t%2 == 0 { // signed: what is above the sign follows it
			n = n << (64 - 8*len(b)) >> (64 - 8*len(b))
		}
		return n
	}
	less := func(x, y int64) bool {
		if t == 5 {
			return uint64(x) < uint64(y)
		}
		return x < y
	}
	x := read(0)
	for k := 1; k < 3; k++ {
		switch y := read(k); {
		case op == host.Sum:
			x += y
		case op == host.Prod:
			x *= y
		case op == host.Max && less(x, y), op == host.Min && less(y, x):
			x = y
		}
	}
	return binary.LittleEndian.AppendUint64(nil, uint64(x))[:t.Size()]
}
