package plugin

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"weft/abi"
	"weft/internal/report"
)

func TestInitOfOldTablesIsOncePerProcess(t *testing.T) {
	for table := abi.NetFirst; table < tableContext; table++ {
		b := newBench(t, nil)
		if err := b.Listen(&abi.NetListenArgs{Ctx: uintptr(table), ListenComm: new(uintptr)}); report.CauseOf(err) != report.Misuse {
			t.Errorf("v%d: listen before init: %v", table, err)
		}
		for range 3 {
			if code, _ := b.init(table, nccl); code != 0 {
				t.Fatalf("v%d: init returned %d", table, code)
			}
		}
		if len(b.engine.contexts) != 1 || b.opened != 1 || b.engine.contexts[0].options.Table != table {
			t.Errorf("v%d: %d contexts, %d times opened", table, len(b.engine.contexts), b.opened)
		}
	}
}

func TestInitOfNewTablesIsOncePerCommunicator(t *testing.T) {
	b := newBench(t, nil)
	first, second := b.mustInit(tableContext), b.mustInit(abi.NetNewest)
	if first == second || first < firstContext || second < firstContext || b.opened != 1 {
		t.Fatalf("contexts %#x and %#x, opened %d times", first, second, b.opened)
	}
	finalize := func(ctx uintptr) int32 { return b.done("finalize", b.Finalize(&abi.NetFinalizeArgs{Ctx: ctx})) }
	if finalize(first) != 0 || b.engine.contexts[0].closed != 1 || b.engine.contexts[1].closed != 0 {
		t.Error("finalize closed the wrong context")
	}
	if finalize(first) != resultInternalError || b.engine.contexts[0].closed != 1 {
		t.Error("a second finalize did something")
	}
	third := b.mustInit(abi.NetNewest)
	if third == first || uint32(third) != uint32(first) {
		t.Errorf("the slot of %#x was reused as %#x: no generation", first, third)
	}
	// A comm split copies the value: both copies are the same context, until one finalizes.
	if err := b.Listen(&abi.NetListenArgs{Ctx: first, ListenComm: new(uintptr)}); report.CauseOf(err) != report.Misuse {
		t.Errorf("listen on a finalized context: %v", err)
	}
	for _, ctx := range []uintptr{0, 1, 11, 15, 16, 0xffffffff, ^uintptr(0), second + 1} {
		if err := b.Finalize(&abi.NetFinalizeArgs{Ctx: ctx}); err == nil {
			t.Errorf("finalize took %#x", ctx)
		}
	}
	if finalize(second) != 0 || finalize(third) != 0 {
		t.Error("finalize failed")
	}
	if again := b.mustInit(abi.NetNewest); again == 0 || b.opened != 1 {
		t.Error("no init after the last finalize")
	}
}

func TestConcurrentInits(t *testing.T) {
	b := newBench(t, nil)
	var wg sync.WaitGroup
	var mu sync.Mutex
	seen := map[uintptr]bool{}
	for i := range 40 {
		wg.Go(func() {
			code, ctx := b.init(tableContext-3+i%5, nccl)
			mu.Lock()
			defer mu.Unlock()
			if code != 0 || ctx != 0 && seen[ctx] {
				t.Errorf("code %d, context %#x", code, ctx)
			}
			seen[ctx] = true
		})
	}
	wg.Wait()
	if b.opened != 1 || len(seen) != 17 { // 8 of each of the two tables that have contexts, and 0
		t.Errorf("opened %d times, %d contexts", b.opened, len(seen))
	}
}

func TestInitWithoutDevicesFails(t *testing.T) {
	for _, c := range []struct {
		err  func() error
		want int32
	}{
		{func() error {
			return report.Errorf(report.Usage, "devices", "no match").Try("unset NCCL_SOCKET_IFNAME")
		}, resultInvalidUsage},
		{func() error { return report.Errorf(report.Host, "devices", "no interface").Try("bring one up") }, resultSystemError},
		{func() error { return errors.New("strange") }, resultInternalError},
	} {
		for _, table := range []int{4, abi.NetNewest} {
			b := newBench(t, nil)
			b.fail = c.err()
			code, ctx := b.init(table, nccl)
			if code != c.want || ctx != 0 || b.opened != 0 {
				t.Errorf("v%d: code %d, context %#x", table, code, ctx)
			}
			if w := b.host.lines(levelWarn); len(w) != 1 || !strings.Contains(w[0].text, strings.Split(c.err().Error(), ";")[0]) {
				t.Errorf("v%d: warnings %v", table, w)
			}
			ndev := int32(9)
			if err := b.Devices(&abi.NetDevicesArgs{Ndev: &ndev}); err == nil || ndev != 0 {
				t.Errorf("v%d: devices after a failed init: %d, %v", table, ndev, err)
			}
			b.fail = nil
			if code, _ := b.init(table, nccl); code != 0 {
				t.Errorf("v%d: init after the cause is gone: %d", table, code)
			}
		}
	}
}

func TestInitSaysWhatItFound(t *testing.T) {
	b := newBench(t, map[string]string{"NCCL_SOCKET_NTHREADS": "many", "WEFT_TIMOUT": "1", "NCCL_SOCKET_RCVBUF": "65536", "NCCL_SOCKET_INLINE": "4"})
	b.mustInit(abi.NetNewest)
	b.mustInit(abi.NetNewest)
	b.mustInit(4)
	if w := b.host.lines(levelWarn); len(w) != 2 {
		t.Errorf("warnings %v", w)
	}
	for _, part := range []string{"verbs is not used", "NCCL_SOCKET_RCVBUF set", "NCCL_SOCKET_INLINE=4 is accepted and changes nothing"} {
		if got := b.host.lines(levelInfo, part); len(got) != 1 {
			t.Errorf("%q is said %d times", part, len(got))
		}
	}
	for _, s := range b.host.said {
		if !strings.HasPrefix(s.text, "NET/weft : ") || s.file == "" || s.line == 0 {
			t.Errorf("line %v", s)
		}
	}
}

// TestNetEventsAreTheContexts has communicators bring callbacks of their own, and copies of NCCL share a table.
func TestNetEventsAreTheContexts(t *testing.T) {
	for _, c := range []struct {
		name  string
		table int
		inits [][2]uintptr // log function, callback
		gone  bool         // the first one's module, before the second init
		want  []uintptr    // of each context
	}{
		{"two communicators", abi.NetNewest, [][2]uintptr{{nccl, 0x10}, {nccl, 0x20}}, false, []uintptr{0x10, 0x20}},
		{"none", abi.NetNewest, [][2]uintptr{{nccl, 0}}, false, []uintptr{0}},
		{"again", 10, [][2]uintptr{{nccl, 0x10}, {nccl, 0x10}}, false, []uintptr{0x10}},
		{"a second copy", 10, [][2]uintptr{{nccl, 0x10}, {other, 0x20}}, false, []uintptr{0}},
		{"a third that is the first", 10, [][2]uintptr{{nccl, 0x10}, {other, 0x20}, {nccl, 0x10}}, false, []uintptr{0}},
		{"a copy in its place", 10, [][2]uintptr{{nccl, 0x10}, {other, 0x20}}, true, []uintptr{0x20}},
		{"before callbacks", 9, [][2]uintptr{{nccl, 0}, {other, 0}}, false, []uintptr{0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, nil)
			for i, in := range c.inits {
				if i == 1 && c.gone {
					delete(b.host.modules, nccl)
				}
				var ctx uintptr
				if err := b.Init(&abi.NetInitArgs{Table: int32(c.table), Ctx: &ctx, LogFunction: in[0], ProfFunction: in[1]}); err != nil {
					t.Fatal(err)
				}
			}
			var got []uintptr
			for _, x := range b.engine.contexts {
				got = append(got, x.options.NetEvents())
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("callbacks %#x, want %#x", got, c.want)
			}
		})
	}
}
