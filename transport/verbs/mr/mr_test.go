package mr

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"weft/internal/fakeibv"
	"weft/internal/report"
	"weft/transport/memory"
	"weft/transport/rdma"
	"weft/transport/verbs/card"
	"weft/transport/verbs/fail"
	"weft/transport/verbs/ibv"
)

const page = 4096

// hostMemory names host memory that nobody touches.
func hostMemory(t *testing.T, addr uintptr, size uint64) *memory.Buffer {
	t.Helper()
	b, err := memory.NewBuffer(addr, size, rdma.MemHost)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// bench is a card with a protection domain.
type bench struct {
	t  *testing.T
	f  *fakeibv.Lib
	c  *card.Card
	pd *PD
}

func newBench(t *testing.T, f *fakeibv.Lib, env map[string]string) *bench {
	t.Helper()
	b := &bench{t: t, f: f}
	b.c, _ = f.Open(fakeibv.Host(t), env)
	var err error
	if b.pd, err = DomainsOf(b.c).Acquire(false); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bench) end() {
	b.t.Helper()
	if err := b.pd.Release(); err != nil {
		b.t.Error(err)
	}
	b.c.Close()
	if left := b.f.Left(); left != nil {
		b.t.Errorf("left: %v", left)
	}
}

func (b *bench) count(call string) (n int) {
	for _, c := range b.f.Made() {
		if c == call {
			n++
		}
	}
	return n
}

func TestEqualRangesShareRegistrations(t *testing.T) {
	if os.Getpagesize() != page {
		t.Skip("written for pages of 4 KiB")
	}
	b := newBench(t, fakeibv.New(t, fakeibv.RoCE("a", "10.0.0.1", 1)), nil)
	reg := func(addr uintptr, size uint64, access ibv.Access, kind rdma.MemKind, strict bool) *Region {
		m := hostMemory(t, addr, size)
		m.Kind, m.Strict = kind, strict
		r, err := b.pd.Register(m, access)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	data := ibv.AccessData
	whole := reg(0x10000, 4*page, data, rdma.MemHost, false)
	for _, c := range []struct {
		addr   uintptr
		size   uint64
		access ibv.Access
		kind   rdma.MemKind
		strict bool
		hit    bool
	}{
		{0x10000, 4 * page, data, rdma.MemHost, false, true},
		{0x10001, 4*page - 1, data, rdma.MemHost, false, true}, // the same pages
		{0x10fff, 2*page + 2, data, rdma.MemHost, false, true},
		{0x10fff, 2*page + 1, data, rdma.MemHost, false, false}, // not the last one
		{0x11000, page, data, rdma.MemHost, false, false},
		{0x0ffff, 4*page + 1, data, rdma.MemHost, false, false}, // one more
		{0x10000, 4*page + 1, data, rdma.MemHost, false, false},
		{0x10000, 4 * page, ibv.AccessCTS, rdma.MemHost, false, false},
		{0x10000, 4 * page, data, rdma.MemCUDA, false, false},
		{0x10000, 4 * page, data, rdma.MemHost, true, false}, // ordered and relaxed are not the same
	} {
		before := b.pd.cache.size()
		r := reg(c.addr, c.size, c.access, c.kind, c.strict)
		if hit := b.pd.cache.size() == before; hit != c.hit || hit && r.LKey != whole.LKey {
			t.Errorf("%+v: hit %v", c, hit)
		}
		if err := r.Release(); err != nil {
			t.Error(err)
		}
	}
	if n := b.pd.cache.size(); n != 1 {
		t.Errorf("%d entries left", n)
	}
	if fail.Pinned.Load() < 4*page {
		t.Error("bytes are not counted")
	}
	if err := whole.Release(); err != nil {
		t.Error(err)
	}
	if err := whole.Release(); err == nil {
		t.Error("a second release went through")
	}
	b.end()
}

// The key of a comm's ring goes to the peer, and beside the ring lie the
// executor's own words: slots, and pointers to its queues.
func TestRingsAreNotWidened(t *testing.T) {
	b := newBench(t, fakeibv.New(t, fakeibv.RoCE("a", "10.0.0.1", 1)), nil)
	register := b.c.Lib.RegMR
	var given []span
	b.c.Lib.RegMR = func(pd ibv.Object, addr uintptr, length uint64, access ibv.Access) (ibv.MemoryKeys, syscall.Errno) {
		given = append(given, span{start: uint64(addr), end: uint64(addr) + length})
		return register(pd, addr, length, access)
	}
	m := hostMemory(t, 0x10840, 2*page+64)
	m.Strict = true
	r, err := b.pd.Register(m, ibv.AccessCTS)
	if err != nil {
		t.Fatal(err)
	}
	if want := (span{start: 0x10840, end: 0x10840 + 2*page + 64}); len(given) != 1 || given[0] != want {
		t.Errorf("registered %x, not %x", given, want)
	}
	if err := r.Release(); err != nil {
		t.Error(err)
	}
	b.end()
}

// Whatever is registered and released in whatever order: the card has a page while,
// and only while, a use that needs it is left, and no use has the key of more.
func TestNothingIsRegisteredLonger(t *testing.T) {
	if os.Getpagesize() != page {
		t.Skip("written for pages of 4 KiB")
	}
	b := newBench(t, fakeibv.New(t, fakeibv.RoCE("a", "10.0.0.1", 1)), nil)
	card := map[ibv.Object]span{} // what it has, by registration
	byKey := map[uint32]ibv.Object{}
	register, deregister := b.c.Lib.RegMRIOVA2, b.c.Lib.DeregMR
	b.c.Lib.RegMRIOVA2 = func(pd ibv.Object, addr uintptr, length uint64, access ibv.Access) (ibv.MemoryKeys, syscall.Errno) {
		keys, errno := register(pd, addr, length, access)
		card[keys.MR], byKey[keys.RKey] = span{start: uint64(addr), end: uint64(addr) + length}, keys.MR
		return keys, errno
	}
	b.c.Lib.DeregMR = func(mr ibv.Object) syscall.Errno {
		delete(card, mr)
		return deregister(mr)
	}
	r := rand.New(rand.NewPCG(3, 4))
	live := map[*Region]span{}
	for range 4000 {
		if len(live) > 0 && r.IntN(5) < 2 {
			for one := range live {
				if err := one.Release(); err != nil {
					t.Fatal(err)
				}
				delete(live, one)
				break
			}
		} else {
			m := hostMemory(t, uintptr(page*(1+r.IntN(16))+r.IntN(2)*100), uint64(page*(1+r.IntN(8))-r.IntN(2)*200))
			got, err := b.pd.Register(m, ibv.AccessData)
			if err != nil {
				t.Fatal(err)
			}
			live[got] = spanOf(m)
			if has, ok := card[byKey[got.RKey]]; !ok || has != spanOf(m) {
				t.Fatalf("the key of %x is of %x, which is registered: %v", spanOf(m), has, ok)
			}
		}
		wanted := map[span]bool{}
		for _, s := range live {
			wanted[s] = true
		}
		for _, s := range card {
			if !wanted[s] {
				t.Fatalf("%x is still registered, and nobody uses it", s)
			}
		}
		if len(card) != len(wanted) {
			t.Fatalf("%d registrations for %d ranges", len(card), len(wanted))
		}
	}
	for one := range live {
		if err := one.Release(); err != nil {
			t.Error(err)
		}
	}
	b.end()
}

func TestLadderOfRegistration(t *testing.T) {
	refuse := func(errno syscall.Errno, calls ...string) func(string, ibv.Access) syscall.Errno {
		return func(call string, access ibv.Access) syscall.Errno {
			if slices.Contains(calls, call) {
				return errno
			}
			return 0
		}
	}
	for _, c := range []struct {
		name   string
		env    map[string]string
		lacks  []string
		strict bool
		onReg  func(string, ibv.Access) syscall.Errno
		how    string // or a part of the error
		tried  int    // calls of ibv_reg_mr_iova2 for two registrations
	}{
		{"relaxed", nil, nil, false, nil, "plain, relaxed ordering", 2},
		{"off", map[string]string{"NCCL_IB_PCI_RELAXED_ORDERING": "0"}, nil, false, nil, "plain", 0},
		{"strict", nil, nil, true, nil, "plain", 0},
		{"library too old", nil, []string{"ibv_reg_mr_iova2"}, false, nil, "plain", 0},
		{"device refuses", nil, nil, false, refuse(syscall.EOPNOTSUPP, "ibv_reg_mr_iova2"), "plain", 1},
		{"relaxed fails", nil, nil, false, refuse(syscall.EINVAL, "ibv_reg_mr_iova2"), "plain", 2},
		{"no memory", nil, nil, false, refuse(syscall.ENOMEM, "ibv_reg_mr_iova2", "ibv_reg_mr"),
			"ibv_reg_mr on a: 8192 bytes of host memory at 0x4000 (with relaxed ordering: cannot allocate memory): cannot allocate memory (ENOMEM); weft has ", 2},
	} {
		f := fakeibv.New(t, fakeibv.RoCE("a", "10.0.0.1", 1))
		f.Lacking, f.OnReg = c.lacks, c.onReg
		b := newBench(t, f, c.env)
		for _, addr := range []uintptr{0x4000, 0x8000} {
			m := hostMemory(t, addr, 2*page)
			m.Strict = c.strict
			r, err := b.pd.Register(m, ibv.AccessData)
			switch {
			case err != nil && (!strings.Contains(err.Error(), c.how) && addr == 0x4000 || report.CauseOf(err) != report.Host || !strings.Contains(err.Error(), "ulimit -l")):
				t.Errorf("%s: %v", c.name, err)
			case err == nil && r.How != c.how:
				t.Errorf("%s: %s", c.name, r.How)
			}
			if err == nil {
				r.Release()
			}
		}
		if n := b.count("ibv_reg_mr_iova2"); n != c.tried {
			t.Errorf("%s: tried %d times", c.name, n)
		}
		b.end()
	}
}

func TestDMABUF(t *testing.T) {
	if os.Getpagesize() != page {
		t.Skip("written for pages of 4 KiB")
	}
	fd := fakeibv.Memfd(t, 0)
	f := fakeibv.New(t, fakeibv.RoCE("a", "10.0.0.1", 1))
	b := newBench(t, f, nil)
	type call struct {
		offset, length uint64
		iova           uintptr
		fd             int
	}
	var calls []call
	plain := b.c.Lib.RegDMABufMR
	b.c.Lib.RegDMABufMR = func(pd ibv.Object, offset, length uint64, iova uintptr, fd int, access ibv.Access) (ibv.MemoryKeys, syscall.Errno) {
		calls = append(calls, call{offset, length, iova, fd})
		return plain(pd, offset, length, iova, fd, access)
	}
	m, err := memory.NewDMABuf(0x20010, 100, 0x3010, fd, rdma.MemCUDA)
	if err != nil {
		t.Fatal(err)
	}
	unix.Close(fd) // the host's descriptor may go at once
	if flags, err := unix.FcntlInt(uintptr(m.FD), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
		t.Error("the copy is not close-on-exec", err)
	}
	r, err := b.pd.Register(m, ibv.AccessData)
	if err != nil {
		t.Fatal(err)
	}
	want := call{0x3000, page, 0x20000, m.FD}
	if len(calls) != 1 || calls[0] != want || r.How != "DMA-BUF, relaxed ordering" {
		t.Errorf("%+v, want %+v; %s", calls, want, r.How)
	}
	again, err := b.pd.Register(m, ibv.AccessData)
	if err != nil || again.RKey != r.RKey || len(calls) != 1 {
		t.Errorf("%v, %d calls", err, len(calls))
	}
	// The same addresses at another offset are other memory.
	other := *m
	other.Offset = 0x5010
	third, err := b.pd.Register(&other, ibv.AccessData)
	if err != nil || third.RKey == r.RKey {
		t.Error(err, "another offset shares the registration")
	}
	if err := errors.Join(r.Release(), again.Release(), third.Release()); err != nil {
		t.Error(err)
	}
	// An offset smaller than the way back to the page's start is taken as it is.
	unaligned, err := memory.NewDMABuf(0x20010, 100, 8, m.FD, rdma.MemCUDA)
	if err != nil {
		t.Fatal(err)
	}
	if s := spanOf(unaligned); s != (span{0x20010, 0x20074, 8}) {
		t.Errorf("%+v", s)
	}
	unaligned.Close()
	m.Close()
	m.Close()
	b.end()
	if _, err := memory.NewDMABuf(0x20000, 100, 0, -1, rdma.MemCUDA); err == nil {
		t.Error("descriptor -1 was taken")
	}
}

func TestDMABUFWithoutSupport(t *testing.T) {
	f := fakeibv.New(t, fakeibv.RoCE("a", "10.0.0.1", 1))
	f.Lacking = []string{"ibv_reg_dmabuf_mr"}
	b := newBench(t, f, nil)
	fd := fakeibv.Memfd(t, 0)
	defer unix.Close(fd)
	m, err := memory.NewDMABuf(0x20000, page, 0, fd, rdma.MemCUDA)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if _, err := b.pd.Register(m, ibv.AccessData); report.CauseOf(err) != report.Unsupported || !strings.Contains(fmt.Sprint(err), "a test's library has no ibv_reg_dmabuf_mr") {
		t.Error(err)
	}
	b.end()
}
