package plugin

import (
	"cmp"
	"errors"
	"testing"

	"weft/abi"
	"weft/profiler"
)

// TestProfile has communicators ask what is wanted of them.
func TestProfile(t *testing.T) {
	all, err := profiler.Mask("all")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		env   map[string]string
		fail  error
		mask  int32
		abi   int32 // of the profiler's table; 0: the newest
		met   int   // files of metrics
		stall bool
		warn  int // lines
		part  string
	}{
		{name: "nothing is wanted", env: nil, mask: 0},
		{name: "off", env: map[string]string{"WEFT_PROFILE": "0"}, mask: 0},
		{name: "trace", env: map[string]string{"WEFT_PROFILE": "trace"}, mask: 0xffdf},
		{name: "all events", env: map[string]string{"WEFT_PROFILE": "trace", "WEFT_PROFILE_EVENTS": "ALL"}, mask: all},
		{name: "metrics", env: map[string]string{"WEFT_PROFILE": "metrics"}, met: 1},
		{name: "both", env: map[string]string{"WEFT_PROFILE": "trace, metrics"}, mask: 0xffdf, met: 1},
		{name: "stall", env: map[string]string{"WEFT_PROFILE": "stall,metrics"}, met: 1, stall: true},
		{name: "no file of metrics", env: map[string]string{"WEFT_PROFILE": "metrics"}, met: 1, fail: errors.New("disk full"), warn: 1, part: "there are no metrics, though WEFT_PROFILE=metrics: disk full"},
		{name: "before phases", env: map[string]string{"WEFT_PROFILE": "trace", "WEFT_PROFILE_EVENTS": "coll,kernelphase"}, abi: 6, mask: abi.ProfileColl},
		{name: "an unknown mode", env: map[string]string{"WEFT_PROFILE": "tracing"}, warn: 1, part: `"tracing" is not known`},
		{name: "one of two", env: map[string]string{"WEFT_PROFILE": "trace,dance"}, mask: 0xffdf, warn: 1, part: `"dance" is not known`},
		{name: "an unknown event", env: map[string]string{"WEFT_PROFILE": "trace", "WEFT_PROFILE_EVENTS": "coll,colls"}, mask: 0xffdf, warn: 1, part: `"colls" is no event`},
		{name: "a release that would hang", env: map[string]string{"WEFT_PROFILE": "trace"}, abi: 3, warn: 1, part: "ncclCommDestroy"},
		{name: "no file", env: map[string]string{"WEFT_PROFILE": "trace"}, fail: errors.New("disk full"), warn: 1, part: "nothing is recorded, though WEFT_PROFILE=trace: disk full"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, c.env)
			b.noRecord = c.fail
			for range 2 { // the second communicator asks again, and nothing is said twice
				var context uintptr
				mask := int32(-1)
				if err := b.profiler.Init(&abi.ProfilerInitArgs{Table: cmp.Or(c.abi, abi.ProfilerNewest), Context: &context, EActivationMask: &mask, Logfn: nccl}); err != nil {
					t.Fatal(err)
				}
				if mask != c.mask || (context != 0) != (c.mask != 0) {
					t.Errorf("mask %#x, context %d; want mask %#x", mask, context, c.mask)
				}
				if err := b.profiler.Finalize(&abi.ProfilerFinalizeArgs{Context: context}); err != nil {
					t.Error(err)
				}
			}
			if got := b.host.lines(levelWarn, c.part); len(got) != c.warn || len(b.host.lines(levelWarn)) != c.warn {
				t.Errorf("log %v, want %d warnings with %q", b.host.said, c.warn, c.part)
			}
			if b.profile.stall != c.stall {
				t.Errorf("stalls are told: %v", b.profile.stall)
			}
			if len(b.records) > 1 || len(b.meters) != c.met {
				t.Errorf("%d files of records, %d of metrics", len(b.records), len(b.meters))
			}
		})
	}
}

// TestChain has communicators ask what is wanted of them where there are further profilers.
func TestChain(t *testing.T) {
	missing := map[string]string{"WEFT_PROFILER_CHAIN": "missing.so,/opt/one.so, two"}
	for _, c := range []struct {
		name  string
		env   map[string]string
		fail  error
		lost  uint64
		abi   int32  // of the profiler's table; 0: 6
		begun int    // communicators that the profilers know, of two
		warn  int    // lines
		part  string // of each
	}{
		{name: "none"},
		{name: "two of three", env: missing, begun: 2, warn: 1, part: "missing.so is not told of events: no such file"},
		{name: "a release that would hang", env: missing, abi: 3, warn: 1, part: "further profilers hear nothing"},
		{name: "no memory", env: map[string]string{"WEFT_PROFILER_CHAIN": "two"}, fail: errors.New("no room"), begun: 2, warn: 2, part: "no profiler of WEFT_PROFILER_CHAIN is told of it: no room"},
		{name: "lost", env: map[string]string{"WEFT_PROFILER_CHAIN": "two"}, lost: 9, begun: 2, warn: 1, part: "9 events were dropped"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, c.env)
			b.host.noChain, b.host.forgotten = c.fail, c.lost
			b.mustInit(12) // so that there is a log between inits
			for range 2 {
				var context uintptr
				mask := int32(-1)
				if err := b.profiler.Init(&abi.ProfilerInitArgs{Table: cmp.Or(c.abi, 6), Context: &context, EActivationMask: &mask, Logfn: nccl}); err != nil {
					t.Fatal(err)
				}
				want := int32(0)
				if c.begun != 0 {
					want = -1 // C says it
				}
				if known := c.begun != 0 && c.fail == nil; mask != want || (context != 0) != known {
					t.Errorf("mask %#x, context %d", mask, context)
				}
				if err := b.profiler.Finalize(&abi.ProfilerFinalizeArgs{Context: context}); err != nil {
					t.Error(err)
				}
				b.profile.chain.finalized() // as C says then
			}
			if got := b.host.lines(levelWarn, c.part); len(got) != c.warn || len(b.host.lines(levelWarn)) != c.warn {
				t.Errorf("log %v, want %d warnings with %q", b.host.said, c.warn, c.part)
			}
			if len(b.host.begun) != c.begun || len(b.records) != 0 {
				t.Errorf("%v begun, %d files", b.host.begun, len(b.records))
			}
		})
	}
}

// A profiler that refuses a communicator is named, on the log of the call.
func TestChainRefuses(t *testing.T) {
	b := newBench(t, map[string]string{"WEFT_PROFILER_CHAIN": "one,two"})
	var context uintptr
	var mask int32
	if err := b.profiler.Init(&abi.ProfilerInitArgs{Table: 6, Context: &context, EActivationMask: &mask, Logfn: nccl}); err != nil {
		t.Fatal(err)
	}
	b.profile.chain.refused(1, 3, nccl)
	if got := b.host.lines(levelWarn, "one of two (two)", "returned 3"); len(got) != 1 {
		t.Errorf("log %v", b.host.said)
	}
}
