package verbs

import (
	"fmt"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"weft/internal/knob"
	"weft/internal/report"
	"weft/transport/fastpath"
	"weft/transport/rdma"
	"weft/transport/verbs/ibv"
)

// Buffer is a range of memory as the host named it. It outlives its
// registrations and can be registered with any card, also later.
type Buffer struct {
	Addr   uintptr
	Size   uint64
	Kind   rdma.MemKind
	Strict bool // the peer writes weft's own words: in order, never relaxed, and not a byte beside them

	fd     int // of the DMA-BUF, a copy of the caller's; -1: none
	offset uint64
	file   [2]uint64 // device and inode, which name the DMA-BUF
}

// NewBuffer names host memory, or GPU memory by its virtual address.
func NewBuffer(addr uintptr, size uint64, kind rdma.MemKind) (*Buffer, error) {
	b := &Buffer{Addr: addr, Size: size, Kind: kind, fd: -1}
	if end := uint64(addr) + size; size == 0 || end < size {
		return nil, report.Errorf(report.Misuse, "regMr", "%d bytes at %#x", size, uint64(addr))
	}
	return b, nil
}

// NewDMABuf names memory behind a DMA-BUF. The caller may close its
// descriptor at once: the buffer has a copy until Close.
func NewDMABuf(addr uintptr, size, offset uint64, fd int, kind rdma.MemKind) (*Buffer, error) {
	b, err := NewBuffer(addr, size, kind)
	if err != nil {
		return nil, err
	}
	b.offset = DMABufOffset(addr, offset)
	if end := b.offset + size; end < size || b.offset < offset {
		return nil, report.Errorf(report.Misuse, "regMrDmaBuf", "%d bytes at offset %d", size, offset)
	}
	if b.fd, err = unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0); err != nil {
		return nil, report.Errorf(report.Host, "regMrDmaBuf", "copy descriptor %d: %w", fd, err).
			Try("the descriptor must be open; raise the limit of open files (ulimit -n) if it is EMFILE")
	}
	if err := fastpath.TrackFD(b.fd); err != nil {
		unix.Close(b.fd)
		return nil, report.Errorf(report.Host, "regMrDmaBuf", "%w", err)
	}
	var st unix.Stat_t
	if err := unix.Fstat(b.fd, &st); err != nil {
		b.Close()
		return nil, report.Errorf(report.Host, "regMrDmaBuf", "descriptor %d: %w", fd, err)
	}
	b.file = [2]uint64{st.Dev, st.Ino}
	return b, nil
}

// DMABufOffset is where in a DMA-BUF the memory at addr begins. Devices map whole
// pages, so an offset means addr itself if both lie alike in their pages; the
// offset of a page means the page that addr is in, as it does for NCCL's net_ib.
func DMABufOffset(addr uintptr, offset uint64) uint64 {
	if page := uint64(os.Getpagesize()); offset%page == 0 {
		return offset + uint64(addr)%page
	}
	return offset
}

// Close gives up the buffer's own resources; its registrations are released before.
func (b *Buffer) Close() {
	if b.fd >= 0 {
		fastpath.UntrackFD(b.fd)
		unix.Close(b.fd)
		b.fd = -1
	}
}

// span is the range in whole pages, as it is registered: neighbours in the same
// pages then share a registration. A DMA-BUF that does not lie in its pages as the
// addresses do in theirs is not widened, nor is a ring: the peer has its key, and
// must not write what lies beside it.
func (b *Buffer) span() span {
	page := uint64(os.Getpagesize())
	start, end := uint64(b.Addr)&^(page-1), (uint64(b.Addr)+b.Size+page-1)&^(page-1)
	if end < start { // the last page of the address space
		end = uint64(b.Addr) + b.Size
	}
	if b.Strict || b.fd >= 0 && (b.offset^uint64(b.Addr))%page != 0 {
		start, end = uint64(b.Addr), uint64(b.Addr)+b.Size
	}
	if b.fd < 0 {
		return span{start: start, end: end}
	}
	return span{start: start, end: end, offset: b.offset - (uint64(b.Addr) - start)}
}

// Region is one use of a registration. Keys are the card's.
type Region struct {
	LKey, RKey uint32
	How        string // which rung of the ladder took it: "relaxed ordering", "plain", "DMA-BUF", ...

	pd    *PD
	entry *mrEntry
}

// Register makes the buffer usable by the card. A range that is registered
// already, and alike, costs nothing but a count.
func (pd *PD) Register(b *Buffer, access ibv.Access) (*Region, error) {
	s := b.span()
	key := mrKey{span: s, access: access, kind: b.Kind, strict: b.Strict, dmabuf: b.fd >= 0, file: b.file}
	c := &pd.cache
	c.Lock()
	defer c.Unlock()
	e := c.entries[key]
	if e == nil {
		keys, how, err := pd.a.register(pd, b, s, access)
		if err != nil {
			return nil, err
		}
		e = &mrEntry{key: key, keys: keys, how: how}
		c.entries[key] = e
		pinned.Add(int64(s.end - s.start))
	}
	e.refs++
	return &Region{LKey: e.keys.LKey, RKey: e.keys.RKey, How: e.how, pd: pd, entry: e}, nil
}

// Release ends this use; the last one of the range deregisters it. Once it returns
// the card touches no page of it that no other registration has.
func (r *Region) Release() error {
	pd := r.pd
	pd.cache.Lock()
	defer pd.cache.Unlock()
	e := r.entry
	if e == nil || e.refs == 0 {
		return report.Errorf(report.Internal, "ibv_dereg_mr", "a registration was released twice").On(pd.a.name)
	}
	r.entry = nil
	if e.refs--; e.refs > 0 {
		return nil
	}
	delete(pd.cache.entries, e.key)
	pinned.Add(int64(e.key.start) - int64(e.key.end))
	if errno := pd.a.p.lib.DeregMR(e.keys.MR); errno != 0 {
		return fail("ibv_dereg_mr", pd.a.name, errno, "%d bytes at %#x", e.key.end-e.key.start, e.key.start)
	}
	return nil
}

// register climbs down the ladder: relaxed ordering, plain, and an error that
// says what was tried.
func (a *adapter) register(pd *PD, b *Buffer, s span, access ibv.Access) (ibv.MemoryKeys, string, error) {
	lib, length := a.p.lib, s.end-s.start
	name, plain := "ibv_reg_mr", func(extra ibv.Access) (ibv.MemoryKeys, syscall.Errno) {
		if extra&ibv.RelaxedOrdering != 0 {
			return lib.RegMRIOVA2(pd.raw, uintptr(s.start), length, access|extra)
		}
		return lib.RegMR(pd.raw, uintptr(s.start), length, access)
	}
	how := "plain"
	if b.fd >= 0 {
		if pd.direct {
			if keys, how, ok := a.registerDirect(pd, b, s, access); ok {
				return keys, how, nil
			}
		}
		if why, refused := a.dmabuf.refused(); refused {
			return ibv.MemoryKeys{}, "", report.Errorf(report.Unsupported, "ibv_reg_dmabuf_mr", "%s", why).On(a.name).
				Try("set NCCL_DMABUF_ENABLE=0; nvidia_peermem or amdkfd serves GPU memory without DMA-BUF")
		}
		name, how = "ibv_reg_dmabuf_mr", "DMA-BUF"
		plain = func(extra ibv.Access) (ibv.MemoryKeys, syscall.Errno) {
			return lib.RegDMABufMR(pd.raw, s.offset, length, uintptr(s.start), b.fd, access|extra)
		}
	}
	var tried []string
	if !b.Strict && a.relaxes() {
		keys, errno := plain(ibv.RelaxedOrdering)
		if errno == 0 {
			a.relaxed.yes()
			return keys, how + ", relaxed ordering", nil
		}
		if b.fd < 0 {
			a.relaxed.learn("ibv_reg_mr_iova2", errno)
		}
		tried = append(tried, "with relaxed ordering: "+errno.Error())
	}
	keys, errno := plain(0)
	if errno == 0 {
		if len(tried) > 0 {
			a.p.log.Info(report.Net, "%s registers without relaxed ordering: %s", a.name, tried[0])
		}
		return keys, how, nil
	}
	what := fmt.Sprintf("%d bytes of %v memory at %#x", length, b.Kind, s.start)
	if b.fd >= 0 {
		what += fmt.Sprintf(", offset %d of descriptor %d", s.offset, b.fd)
		if (s.start^s.offset)%uint64(os.Getpagesize()) != 0 {
			what += " (they lie differently in their pages, which no hardware maps)"
		}
	}
	if len(tried) > 0 {
		what += " (" + strings.Join(tried, "; ") + ")"
	}
	return ibv.MemoryKeys{}, "", fail(name, a.name, errno, "%s", what)
}

// relaxes reports whether relaxed ordering is wanted and not known to be absent.
func (a *adapter) relaxes() bool {
	_, refused := a.relaxed.refused()
	return !refused && a.p.knobs.Int(knob.IBRelaxedOrdering) != 0
}
