package host_test

import (
	"fmt"
	"testing"

	"weft/internal/build"
	"weft/internal/host"
)

// Every collNet, profiler and tuner table can be bound and called; what the library returns
// is judged elsewhere.
func TestOtherFamilies(t *testing.T) {
	path, err := build.Library()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range host.Families()[1:] {
		first, last := f.Versions()
		for v := first; v <= last; v++ {
			t.Run(fmt.Sprintf("%s v%d", f, v), func(t *testing.T) {
				h := start(t, host.Options{})
				lib, err := h.Load(path)
				if err != nil {
					t.Fatal(err)
				}
				table, err := lib.Bind(f, v, "")
				if err != nil || table.Name != "weft" || !table.Slots["init"] {
					t.Fatalf("bound %+v (%v)", table, err)
				}
				calls := map[string]host.Args{"init": nil, "devices": nil, "reduceSupport": {"type", 7}}
				if f == host.FamilyProf {
					calls = map[string]host.Args{"init": {"name", "test", "nranks", 2}, "finalize": nil, "stopEvent": nil}
				}
				if f == host.FamilyTune {
					calls = map[string]host.Args{"init": {"nranks", 2, "nnodes", 2}, "getCollInfo": {"bytes", 64, "cost", []int{1, 2, 3}}, "finalize": nil}
				}
				for slot, a := range calls {
					if _, err := table.Call("main", slot, a); err != nil && host.Code(err) == host.HostError {
						t.Errorf("%s: %v", slot, err)
					}
				}
				if _, err := table.Call("main", "isend", nil); !host.NoSlot(err) {
					t.Errorf("isend of %s: %v", f, err)
				}
			})
		}
	}
}

func TestProcess(t *testing.T) {
	h := start(t, host.Options{Env: []string{"WEFT_X=1"}})
	if r, err := h.Call("main", "proc.getenv", host.Args{"name", "WEFT_X"}); err != nil || r.Str("value") != "1" {
		t.Errorf("environment: %q (%v)", r.Str("value"), err)
	}
	if err := h.Rlimit("nofile", 100, 200); err != nil {
		t.Error(err)
	}
	if n, err := h.RaiseFiles(); err != nil || n != 200 {
		t.Errorf("raised to %d files (%v)", n, err)
	}
	if r, err := h.Call("main", "fd.cloexec", nil); err != nil || r.Str("leaky") != "" {
		t.Errorf("the host leaks descriptors %q (%v)", r.Str("leaky"), err)
	}
	if _, err := h.Call("x", "proc.pin", host.Args{"cpu", 0}); err != nil {
		t.Error(err)
	}
	r, err := h.Call("main", "mem.dmabuf", host.Args{"size", 8192})
	if err != nil && !host.NoSlot(err) {
		t.Errorf("dma-buf: %v", err)
	} else if err == nil {
		if err := h.Fill(r.Ptr("addr"), 8192, 5); err != nil {
			t.Error(err)
		}
	}
}
