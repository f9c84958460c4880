package fastpath_test

import (
	"errors"
	"sync"
	"testing"

	"weft/transport/fastpath"
)

func TestHandlesOfMemory(t *testing.T) {
	seen := map[uintptr]bool{}
	for i := range 100 {
		h, err := fastpath.RegisterMR(fastpath.MR{Device: 200, Addr: 0x1000, Base: 0x1000, Length: 0x1000, Kind: 1, Cookie: uint64(i)})
		if err != nil {
			t.Fatal(err)
		}
		if h <= 2 || seen[h] {
			t.Fatalf("handle %#x", h)
		}
		seen[h] = true
		if cookie, err := fastpath.LookupMR(h); err != nil || cookie != uint64(i) {
			t.Fatalf("cookie %d, %v", cookie, err)
		}
		if _, err := fastpath.DeregisterMR(h, 1); err != nil {
			t.Fatal(err)
		}
		var stale *fastpath.HandleError
		if _, err := fastpath.LookupMR(h); !errors.As(err, &stale) || stale.Value != h {
			t.Fatalf("a stale handle: %v", err)
		}
	}
	if _, err := fastpath.RegisterMR(fastpath.MR{Addr: ^uintptr(0) - 10, Length: 100, Kind: 1}); !errors.Is(err, fastpath.ErrWraps) {
		t.Error("a range that wraps around was registered")
	}
}

func TestForeignHandles(t *testing.T) {
	for _, h := range []uintptr{0, 1, 2, 0xdeadbeef, ^uintptr(0), 0x1000_0000_0000_0000, 0x2fff_ffff_ffff_0000} {
		if _, err := fastpath.Lookup(h); err == nil {
			t.Errorf("%#x is a comm", h)
		}
		if _, err := fastpath.LookupMR(h); err == nil {
			t.Errorf("%#x is memory", h)
		}
		if _, err := fastpath.DeregisterMR(h, 1); err == nil {
			t.Errorf("%#x was deregistered", h)
		}
	}
	if _, err := fastpath.New(fastpath.Options{}); err == nil {
		t.Error("a comm of no kind")
	}
}

func TestSlabsAreRecycled(t *testing.T) {
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 200 {
				c, err := fastpath.New(fastpath.Options{Kind: fastpath.Recv, Device: 201, Cookie: 9})
				if err != nil {
					t.Error(err)
					return
				}
				if c.Cookie() != 9 || c.Snapshot() != (fastpath.Stats{}) {
					t.Errorf("a new comm is not clean: %+v", c.Snapshot())
				}
				if err := c.Hold(); err != nil {
					t.Error(err)
				}
				c.Release()
				c.Fail(4)
				if err := c.Close(); err != nil {
					t.Error(err)
				}
				c.Free()
				c.Free()
			}
		})
	}
	wg.Wait()
}

func TestTrackedDescriptors(t *testing.T) {
	for fd, ok := range map[int]bool{-1: false, 0: true, 1<<20 - 1: true, 1 << 30: false} {
		if err := fastpath.TrackFD(fd); (err == nil) != ok {
			t.Errorf("track %d: %v", fd, err)
		}
		fastpath.UntrackFD(fd)
	}
	fastpath.ProgressWake()
	fastpath.SetReaping(1)
	fastpath.SetReaping(0)
}
