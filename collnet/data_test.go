package collnet

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"unsafe"

	"weft/abi"
	"weft/collnet/kernels"
)

// fill makes small whole numbers of a type: their sums and products are exact in all types.
func fill(r *rand.Rand, b []byte, t abi.DataType, red abi.RedOp) {
	size := kernels.Size(t)
	most := 3
	if red == abi.Prod {
		most = 2
	}
	for i := 0; i+size <= len(b); i += size {
		putNumber(b[i:], t, r.IntN(most))
	}
}

// putNumber writes 0, 1 or 2.
func putNumber(b []byte, t abi.DataType, v int) {
	one := map[abi.DataType][3]uint64{
		abi.Float16: {0, 0x3c00, 0x4000}, abi.Float32: {0, 0x3f800000, 0x40000000}, abi.Float64: {0, 0x3ff0000000000000, 0x4000000000000000},
		abi.Bfloat16: {0, 0x3f80, 0x4000}, abi.Float8e4m3: {0, 0x38, 0x40}, abi.Float8e5m2: {0, 0x3c, 0x40},
	}
	bits := uint64(v)
	if p, ok := one[t]; ok {
		bits = p[v]
	}
	for i := range kernels.Size(t) {
		b[i] = byte(bits >> (8 * i))
	}
}

// reduced is what all inputs reduce to.
func reduced(t testing.TB, in [][]byte, dt abi.DataType, red abi.RedOp) []byte {
	out := make([]byte, len(in[0]))
	if len(out) == 0 {
		return out
	}
	var pins runtime.Pinner
	defer pins.Unpin()
	src := make([]unsafe.Pointer, len(in))
	for i := range in {
		src[i] = address(in[i])
		pins.Pin(src[i])
	}
	if err := kernels.Reduce(address(out), false, src, false, len(out)/kernels.Size(dt), dt, red); err != nil {
		t.Fatal(err)
	}
	return out
}

// each runs do for all ranks at once.
func each(all []*member, do func(m *member)) {
	var wg sync.WaitGroup
	for _, m := range all {
		wg.Go(func() { do(m) })
	}
	wg.Wait()
}

// began posts until there is a request.
func (m *member) began(post func() (uintptr, error)) uintptr {
	for {
		request, err := post()
		if err != nil {
			m.t.Errorf("rank %d: %v", m.rank, err)
			return 0
		}
		if request != 0 {
			return request
		}
	}
}

// allReduce has all ranks reduce, and compares.
func allReduce(t *testing.T, all []*member, seed uint64, count int, dt abi.DataType, red abi.RedOp, inPlace bool) {
	size := count * kernels.Size(dt)
	in := make([][]byte, len(all))
	for r := range in {
		in[r] = make([]byte, size)
		fill(rand.New(rand.NewPCG(seed, uint64(r))), in[r], dt, red)
	}
	want := reduced(t, in, dt, red)
	each(all, func(m *member) {
		send := m.memory(size)
		defer send.end()
		copy(send.bytes, in[m.rank])
		recv := send
		if !inPlace {
			recv = m.memory(size)
			defer recv.end()
		}
		request := m.began(func() (uintptr, error) { return m.AllReduce(send.Buf, recv.Buf, uint64(count), dt, red) })
		if got, code := m.wait(request); code != 0 || got != size {
			t.Errorf("rank %d: code %d, size %d, log %v", m.rank, code, got, m.log.Lines())
		}
		if !bytes.Equal(recv.bytes, want) {
			t.Errorf("rank %d of %d: %d elements of type %d, operation %d, in place %v: wrong", m.rank, m.n, count, dt, red, inPlace)
		}
	})
}

var sizes = []int{0, 1, 3, 64, 1000, 1 << 14, 1<<16 + 7, 1 << 18}

func TestAllReduce(t *testing.T) {
	for _, n := range []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 16} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			w, all := inMemory(t, n, 64<<10)
			r := rand.New(rand.NewPCG(1, uint64(n)))
			for i := range 16 {
				count := sizes[i%len(sizes)]
				allReduce(t, all, r.Uint64(), count, abi.DataType(r.IntN(int(abi.NumTypes))), abi.RedOp(r.IntN(4)), r.IntN(2) == 0)
			}
			w.end(t, all)
		})
	}
}

// A window as NCCL asks for it, in one buffer or in several.
func TestWindows(t *testing.T) {
	for _, n := range []int{1, 2, 3, 4, 8} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			w, all := inMemory(t, n, 8<<10)
			r := rand.New(rand.NewPCG(2, uint64(n)))
			for _, rank := range []int{4, 1000, 40000} {
				for i := range 6 {
					win := Window{Rank: rank, Bytes: n * rank}
					if i > 0 {
						win.Off = r.IntN(n*rank/4) * 4
						win.Bytes = r.IntN((n*rank-win.Off)/4+1) * 4
					}
					parts := 1 + i%3
					gatherWindow(t, all, win, parts, i%2 == 0)
					scatterWindow(t, all, win, parts, abi.Int32, i%2 == 0)
				}
			}
			w.end(t, all)
		})
	}
}

// cutUp is a buffer as so many parts.
func cutUp(b *buffer, parts int) (all []Part) {
	for i := range parts {
		from, to := len(b.bytes)*i/parts, len(b.bytes)*(i+1)/parts
		all = append(all, Part{b.at(from), to - from})
	}
	return all
}

func gatherWindow(t *testing.T, all []*member, w Window, parts int, inPlace bool) {
	whole := make([]byte, len(all)*w.Rank)
	for i := range whole {
		whole[i] = byte(i*7 + i>>8)
	}
	each(all, func(m *member) {
		at, mine := w.mine(m.rank)
		recv := m.memory(w.Bytes)
		defer recv.end()
		send := Buf{recv.Address + uintptr(at), recv.Handle}
		if mine == 0 {
			send = recv.Buf
		} else if inPlace && parts == 1 {
			copy(recv.bytes[at:], whole[w.Off+at:][:mine])
		} else {
			b := m.memory(mine)
			defer b.end()
			copy(b.bytes, whole[w.Off+at:])
			send = b.Buf
		}
		request := m.began(func() (uintptr, error) { return m.AllGather(send, cutUp(recv, parts), w) })
		if got, code := m.wait(request); code != 0 || got != w.Bytes {
			t.Errorf("rank %d: code %d, size %d, log %v", m.rank, code, got, m.log.Lines())
		}
		if !bytes.Equal(recv.bytes, whole[w.Off:w.Off+w.Bytes]) {
			t.Errorf("rank %d of %d: window %+v in %d parts: wrong", m.rank, m.n, w, parts)
		}
	})
}

func scatterWindow(t *testing.T, all []*member, w Window, parts int, dt abi.DataType, inPlace bool) {
	in := make([][]byte, len(all))
	for r := range in {
		in[r] = make([]byte, w.Bytes)
		fill(rand.New(rand.NewPCG(uint64(w.Off), uint64(r))), in[r], dt, abi.Sum)
	}
	want := reduced(t, in, dt, abi.Sum)
	each(all, func(m *member) {
		at, mine := w.mine(m.rank)
		send := m.memory(w.Bytes)
		defer send.end()
		copy(send.bytes, in[m.rank])
		recv, got := Buf{send.Address + uintptr(at), send.Handle}, []byte(nil)
		if mine == 0 {
			recv = send.Buf
		} else if inPlace && parts == 1 {
			got = send.bytes[at:][:mine]
		} else {
			b := m.memory(mine)
			defer b.end()
			recv, got = b.Buf, b.bytes
		}
		request := m.began(func() (uintptr, error) { return m.ReduceScatter(cutUp(send, parts), recv, w, dt, abi.Sum) })
		if size, code := m.wait(request); code != 0 || size != mine {
			t.Errorf("rank %d: code %d, size %d, log %v", m.rank, code, size, m.log.Lines())
		}
		if mine > 0 && !bytes.Equal(got, want[at:][:mine]) {
			t.Errorf("rank %d of %d: window %+v in %d parts: wrong", m.rank, m.n, w, parts)
		}
	})
}

// Many operations under way, tested in any order.
func TestManyAtOnce(t *testing.T) {
	const ops, count = 80, 3000
	w, all := inMemory(t, 4, 4<<10)
	each(all, func(m *member) {
		send, recv := m.memory(ops*count*4), m.memory(ops*count*4)
		defer send.end()
		defer recv.end()
		for i := 0; i < len(send.bytes); i += 4 {
			putNumber(send.bytes[i:], abi.Float32, (i/4+m.rank)%2)
		}
		open := map[uintptr]bool{}
		for posted := 0; posted < ops || len(open) > 0; {
			if posted < ops {
				request, err := m.AllReduce(send.at(posted*count*4), recv.at(posted*count*4), count, abi.Float32, abi.Sum)
				if err != nil {
					t.Error(err)
					return
				}
				if request != 0 {
					posted++
					open[request] = true
				}
				if len(open) < MaxRequests && posted < ops {
					continue
				}
			}
			for r := range open {
				if done, _, code := m.words.test(r); code != 0 {
					t.Errorf("code %d", code)
					return
				} else if done {
					delete(open, r)
				}
			}
		}
		two := make([]byte, 4)
		putNumber(two, abi.Float32, 2)
		for i := 0; i < len(recv.bytes); i += 4 {
			if !bytes.Equal(recv.bytes[i:i+4], two) {
				t.Errorf("rank %d: element %d is wrong", m.rank, i/4)
				return
			}
		}
	})
	w.end(t, all)
}
