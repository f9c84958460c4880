package kernels

import (
	"slices"
	"testing"
	"unsafe"

	"weft/abi"
)

func TestSizes(t *testing.T) {
	for of, want := range map[abi.DataType][2]int{
		abi.Char: {1, 1}, abi.Uint8: {1, 1}, abi.Int: {4, 4}, abi.Uint32: {4, 4}, abi.Int64: {8, 8}, abi.Uint64: {8, 8},
		abi.Half: {2, 4}, abi.Float: {4, 4}, abi.Double: {8, 8}, abi.Bfloat16: {2, 4}, abi.Float8e4m3: {1, 4}, abi.Float8e5m2: {1, 4},
		abi.NumTypes: {0, 0}, 1 << 31: {0, 0},
	} {
		if got := [2]int{Size(of), AccSize(of)}; got != want {
			t.Errorf("type %d: %v bytes, want %v", of, got, want)
		}
	}
}

func TestWhatIsSupported(t *testing.T) {
	for of := range abi.NumTypes + 2 {
		for _, op := range []abi.RedOp{abi.Sum, abi.Prod, abi.Max, abi.Min, abi.Avg, abi.NumOps, abi.MaxRedOp} {
			if got, want := Supported(of, op), of < abi.NumTypes && op < abi.Avg; got != want {
				t.Errorf("type %d op %d: %v", of, op, got)
			}
		}
	}
}

func TestReduceRefuses(t *testing.T) {
	var word uint64
	one := []unsafe.Pointer{unsafe.Pointer(&word)}
	for _, c := range []struct {
		name  string
		srcs  []unsafe.Pointer
		count int
		of    abi.DataType
		op    abi.RedOp
	}{
		{"no such type", one, 1, abi.NumTypes, abi.Sum},
		{"an average", one, 1, abi.Float, abi.Avg},
		{"fewer than no elements", one, -1, abi.Float, abi.Sum},
		{"no sources", nil, 1, abi.Float, abi.Sum},
	} {
		if err := Reduce(unsafe.Pointer(&word), false, c.srcs, false, c.count, c.of, c.op); err == nil {
			t.Errorf("%s: no error", c.name)
		}
	}
	if got := run(t, kinds[0], false, [][]byte{{1, 2, 3, 4}}, false, 0, abi.Float, abi.Sum); len(got) != 0 {
		t.Errorf("of no elements: %v", got)
	}
}

// Every kind that this CPU is says the same of any bytes, and it is what the rules say.
func FuzzReduce(f *testing.F) {
	f.Add([]byte("0123456789abcdef0123456789abcdef"), byte(6), byte(0), byte(2), byte(0))
	f.Add(slices.Repeat([]byte{0x7f, 0xff, 0x80, 0}, 30), byte(11), byte(2), byte(3), byte(1))
	f.Add(slices.Repeat([]byte{0, 0x7c, 1, 0}, 50), byte(9), byte(1), byte(1), byte(2))
	f.Fuzz(func(t *testing.T, data []byte, typed, opped, many, mode byte) {
		of, op, n := abi.DataType(typed)%abi.NumTypes, abi.RedOp(opped)%abi.Avg, 1+int(many)%4
		dstAcc, srcAcc := mode&1 == 1, mode&2 == 2
		size := Size(of)
		if srcAcc {
			size = AccSize(of)
		}
		count := len(data) / n / size
		srcs := make([][]byte, n)
		for i := range srcs {
			srcs[i] = append(data[i*count*size:][:count*size:count*size], 0)
		}
		for _, k := range kinds {
			got := run(t, k, dstAcc, srcs, srcAcc, count, of, op)
			if i := slices.IndexFunc(floats, func(f float) bool { return f.t == of }); i >= 0 {
				compare(t, floats[i], op, dstAcc, got, srcs, srcAcc, count)
			} else {
				compareIntegers(t, of, op, got, srcs, count)
			}
		}
	})
}
