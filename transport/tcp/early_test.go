package tcp_test

import (
	"runtime"
	"sync/atomic"
	"testing"
	"unsafe"

	"weft/internal/hostcalls"
	"weft/transport/fastpath"
)

// NCCL's protocol LL128 reads a line of 128 bytes once its last word, a flag, is there: the line must be there then. A kernel that
// copies a page at once shows words of it in any order.
func TestLinesAreThereWithTheirFlags(t *testing.T) {
	const buffer, line, words = 4915200, 128, 16 // the buffer of LL128
	for _, c := range []struct {
		what         string
		length, room int
	}{{"a registration of its own", buffer, buffer}, {"registered with others", buffer + 4096, buffer / 8}} {
		t.Run(c.what, func(t *testing.T) {
			tx, rx := connected(t, 2, 130)
			rx.mem = mapped(t, c.length)
			var err error
			at := uintptr(unsafe.Pointer(&rx.mem[0]))
			if rx.mr, err = fastpath.RegisterMR(fastpath.MR{Device: 130, Addr: at, CPU: at, Length: uint64(c.length), Kind: 1, Cookie: 8}); err != nil {
				t.Fatal(err)
			}
			const lines, rounds = 4800, 300
			out := unsafe.Slice((*uint64)(unsafe.Pointer(&tx.mem[0])), lines*words)
			in := unsafe.Slice((*uint64)(unsafe.Pointer(&rx.mem[0])), lines*words)
			var seen, old atomic.Int64 // rounds that the reader has seen, lines with a word of an earlier one
			var stop atomic.Bool
			gone := make(chan struct{})
			go func() {
				defer close(gone)
				runtime.LockOSThread()
				for r := uint64(1); r <= rounds; r++ {
					for l := range lines {
						this := in[l*words : (l+1)*words]
						for atomic.LoadUint64(&this[words-1]) != r {
							if stop.Load() {
								return
							}
						}
						for w := range words {
							if atomic.LoadUint64(&this[w]) != r {
								old.Add(1)
								break
							}
						}
					}
					seen.Store(int64(r))
				}
			}()
			defer func() {
				stop.Store(true)
				<-gone
			}()
			for r := uint64(1); r <= rounds; r++ {
				for i := range out {
					out[i] = r
				}
				recv, rc := hostcalls.Irecv(rx.handle, rx.buf(0, c.room, 0))
				if rc != 0 || recv == 0 {
					t.Fatalf("irecv returned %#x, %d", recv, rc)
				}
				if _, rc := hostcalls.Finish(t, isend(t, tx, tx.buf(0, lines*line, 0)), recv); rc != 0 {
					t.Fatalf("code %d", rc)
				}
				for seen.Load() < int64(r) {
					runtime.Gosched()
				}
			}
			if n := old.Load(); n > 0 {
				t.Errorf("%d lines had an old word behind a new flag", n)
			}
		})
	}
}
