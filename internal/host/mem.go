package host

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
)

// Alloc allocates host memory, 64-byte aligned.
func (h *Host) Alloc(size int64, extra ...any) (Ptr, error) {
	r, err := h.Call("main", "mem.alloc", append(Args{"size", size}, extra...))
	return r.Ptr("addr"), err
}

// AllocGuarded allocates memory that ends at a page nobody may touch.
func (h *Host) AllocGuarded(size int64) (Ptr, error) { return h.Alloc(size, "guard", 1, "end", 1) }

// Free frees what Alloc returned.
func (h *Host) Free(addr Ptr) error {
	_, err := h.Call("main", "mem.free", Args{"addr", addr})
	return err
}

// Remap puts other, empty memory at the same addresses; whole pages.
func (h *Host) Remap(addr Ptr, size int64) error {
	_, err := h.Call("main", "mem.remap", Args{"addr", addr, "size", size})
	return err
}

// Fill writes the seed's pattern.
func (h *Host) Fill(addr Ptr, size int64, seed uint64) error {
	_, err := h.Call("main", "mem.fill", Args{"addr", addr, "size", size, "seed", seed})
	return err
}

// FillByte writes one byte everywhere.
func (h *Host) FillByte(addr Ptr, size int64, b byte) error {
	_, err := h.Call("main", "mem.fill", Args{"addr", addr, "size", size, "byte", b})
	return err
}

// Check compares memory with the seed's pattern; the error says where it differs.
func (h *Host) Check(addr Ptr, size int64, seed uint64) error {
	return h.check(Args{"addr", addr, "size", size, "seed", seed}, size)
}

// CheckByte requires every byte to be b.
func (h *Host) CheckByte(addr Ptr, size int64, b byte) error {
	return h.check(Args{"addr", addr, "size", size, "byte", b}, size)
}

func (h *Host) check(a Args, size int64) error {
	r, err := h.Call("main", "mem.check", a)
	if err != nil {
		return err
	}
	if bad := r.Int("bad"); bad != 0 {
		return fmt.Errorf("%s: %d of %d bytes differ, the first at offset %d", h.opts.Name, bad, size, r.Int("first"))
	}
	return nil
}

// Read copies host memory out.
func (h *Host) Read(addr Ptr, size int64) ([]byte, error) {
	r, err := h.Call("main", "mem.read", Args{"addr", addr, "size", size})
	if err != nil {
		return nil, err
	}
	return hex.DecodeString(r.Str("hex"))
}

// Write copies bytes into host memory.
func (h *Host) Write(addr Ptr, b []byte) error {
	_, err := h.Call("main", "mem.write", Args{"addr", addr, "hex", hex.EncodeToString(b)})
	return err
}

// Pattern is the seed pattern that mem.fill writes: the little endian words
// splitmix64(seed + word index).
func Pattern(seed uint64, size int) []byte {
	b := make([]byte, (size+7)/8*8)
	for i := 0; i < len(b); i += 8 {
		z := (seed + uint64(i/8)) * 0x9E3779B97F4A7C15
		z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
		z = (z ^ z>>27) * 0x94D049BB133111EB
		binary.LittleEndian.PutUint64(b[i:], z^z>>31)
	}
	return b[:size]
}
