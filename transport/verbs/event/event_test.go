package event

import (
	"errors"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"weft/internal/fakeibv"
	"weft/internal/report"
	"weft/transport/verbs/ibv"
)

func TestFatalEventsReachWhomTheyConcern(t *testing.T) {
	for _, quiet := range []string{"1", "0"} {
		f := fakeibv.New(t, fakeibv.RoCE("a", "10.0.0.1", 1)).Eventful()
		b := newBench(t, f, map[string]string{"NCCL_IB_RETURN_ASYNC_EVENTS": quiet})
		q, err := b.qp(42)
		if err != nil {
			t.Fatal(err)
		}
		came := make(chan Event, 16)
		stop := b.s.Subscribe(func(e Event) { came <- e })
		for _, c := range []struct {
			raw   ibv.AsyncEvent
			fatal bool
			part  string
		}{
			{ibv.AsyncEvent{Kind: ibv.EventQPFatal, Element: ibv.Object(q.Pointer())}, true, "QP fatal error: QP "},
			{ibv.AsyncEvent{Kind: ibv.EventQPAccessErr, Element: ibv.Object(q.Pointer())}, true, "in state INIT"},
			{ibv.AsyncEvent{Kind: ibv.EventCQErr, Element: ibv.Object(b.cq.Pointer())}, true, "completion queue of 512"},
			{ibv.AsyncEvent{Kind: ibv.EventDeviceFatal}, true, "all of the device"},
			{ibv.AsyncEvent{Kind: ibv.EventCommEst, Element: ibv.Object(q.Pointer())}, false, ""},
			{ibv.AsyncEvent{Kind: ibv.EventQPFatal, Element: 0x7}, false, ""}, // somebody else's
			{ibv.AsyncEvent{Kind: ibv.EventKind(99)}, false, ""},
		} {
			f.Send(c.raw)
			e := fakeibv.Receive(t, came)
			if got := e.Err != nil; got != (c.fatal && quiet == "1") || e.Kind != c.raw.Kind || e.NIC != "a" {
				t.Errorf("%v: %+v", c.raw.Kind, e)
			}
			if e.Err != nil && (!strings.Contains(e.Err.Error(), c.part) || e.Err.Cause != report.Host || !strings.HasPrefix(e.Err.Error(), "asynchronous event on a: ")) {
				t.Errorf("%v: %v", c.raw.Kind, e.Err)
			}
			if c.raw.Element == ibv.Object(q.Pointer()) && (e.QP != q || e.QP.Cookie != 42) || c.raw.Element == ibv.Object(b.cq.Pointer()) && e.CQ != b.cq {
				t.Errorf("%v: %+v", c.raw.Kind, e)
			}
		}
		if n := b.log.Count("WARN asynchronous event"); quiet == "0" && n != 4 {
			t.Errorf("%d warnings: %q", n, b.log.Lines())
		}
		stop()
		f.Send(ibv.AsyncEvent{Kind: ibv.EventDeviceFatal})
		q.Close()
		b.end()
		if len(came) != 0 {
			t.Error("an event came after stop")
		}
		if q.State() != ibv.StateInit || q.Fence() == nil {
			t.Error("a closed queue pair reaches the library") // the fake would not know it
		}
	}
}

func TestPortEventsAreKept(t *testing.T) {
	f := fakeibv.New(t, fakeibv.RoCE("a", "10.0.0.1", 1)).Eventful()
	b := newBench(t, f, nil)
	came := make(chan Event, 16)
	b.s.Subscribe(func(e Event) { came <- e })
	if g := b.d.GIDs(); len(g) == 0 || g[0].Index != 3 || g[0].Addr.Unmap().String() != "10.0.0.1" {
		t.Errorf("discovered with %v", g)
	}
	f.Send(ibv.AsyncEvent{Kind: ibv.EventPortErr, Port: 1})
	if e := fakeibv.Receive(t, came); e.Device != b.d || e.Err != nil || b.d.Down() == "" || b.log.Count("WARN a port 1: the link went down") != 1 {
		t.Errorf("%+v, down %q, %q", e, b.d.Down(), b.log.Lines())
	}
	// While the link was down its address changed, and the entry with it.
	f.Lock()
	f.Cards[0].Ports[0].GIDs = []ibv.GIDEntry{fakeibv.Entry(6, ibv.GIDRoCEv2, "10.0.0.77", 1)}
	f.Cards[0].Ports[0].ActiveMTU = 3
	f.Unlock()
	f.Send(ibv.AsyncEvent{Kind: ibv.EventPortActive, Port: 1})
	fakeibv.Receive(t, came)
	if g := b.d.GIDs(); b.d.Down() != "" || g[0].Index != 6 || len(g) != 1 || b.d.PathMTU() != 1024 || b.log.Count("INFO NET a port 1 uses GID 10.0.0.77 (index 6") != 1 {
		t.Errorf("down %q, %v, %q", b.d.Down(), g, b.log.Lines())
	}
	f.Lock() // the address changes again, and the link stays up
	f.Cards[0].Ports[0].GIDs = []ibv.GIDEntry{fakeibv.Entry(2, ibv.GIDRoCEv2, "10.0.0.78", 1)}
	f.Unlock()
	f.Send(ibv.AsyncEvent{Kind: ibv.EventGIDChange, Port: 1})
	fakeibv.Receive(t, came)
	if g := b.d.GIDs(); len(g) != 1 || g[0].Index != 2 || b.log.Count("INFO NET a port 1 uses GID 10.0.0.78 (index 2") != 1 {
		t.Errorf("%v, %q", g, b.log.Lines())
	}
	f.Lock()
	f.Cards[0].Ports[0].GIDs = nil
	f.Unlock()
	f.Send(ibv.AsyncEvent{Kind: ibv.EventGIDChange, Port: 1})
	fakeibv.Receive(t, came)
	if len(b.d.GIDs()) != 1 || b.log.Count("INFO NET a port 1 keeps GID") != 1 {
		t.Errorf("%v, %q", b.d.GIDs(), b.log.Lines())
	}
	f.Send(ibv.AsyncEvent{Kind: ibv.EventSpeedChange, Port: 2}) // of a port that is not in use
	if e := fakeibv.Receive(t, came); e.Device != nil {
		t.Errorf("%+v", e)
	}
	b.end()
}

// The reading ends with its card, also amid events, and a library whose
// events fail says so once and does not spin.
func TestReadingEnds(t *testing.T) {
	f := fakeibv.New(t, fakeibv.RoCE("a", "10.0.0.1", 1)).Eventful()
	s, _, _, log := hear(t, f, nil, nil)
	f.Send(ibv.AsyncEvent{Kind: ibv.EventSMChange, Port: 1})
	closed := make(chan struct{})
	go func() { s.Close(); s.Close(); close(closed) }()
	fakeibv.Receive(t, closed)
	if left := f.Left(); left != nil {
		t.Error(left)
	}
	if log.Count("WARN") != 0 {
		t.Errorf("a watch that was ended says %q", log.Lines())
	}

	f = fakeibv.New(t, fakeibv.RoCE("a", "10.0.0.1", 1)).Eventful()
	asked := 0
	s, _, _, log = hear(t, f, nil, func(lib *ibv.Calls) {
		lib.GetAsyncEvent = func(ibv.Object) (ibv.AsyncEvent, syscall.Errno) { asked++; return ibv.AsyncEvent{}, syscall.EIO }
	})
	fakeibv.Receive(t, s.reader.done)
	s.Close()
	if asked != 1 || log.Count("WARN ibv_get_async_event on a", "EIO") != 1 {
		t.Errorf("asked %d times, %q", asked, log.Lines())
	}
}

// A card that reported a fatal error is out of use, and says so, until a queue
// pair can be made on it; its events are one moment to try that.
func TestFatalCardIsOutOfUse(t *testing.T) {
	f := fakeibv.New(t, fakeibv.RoCE("a", "10.0.0.1", 1)).Eventful()
	b := newBench(t, f, nil)
	came := make(chan Event, 16)
	b.s.Subscribe(func(e Event) {
		if e.Kind == ibv.EventDeviceFatal && !strings.Contains(b.d.Down(), "the card reported a fatal error") {
			t.Errorf("a subscriber sees %q", b.d.Down())
		}
		came <- e
	})
	broken := func(errno syscall.Errno) {
		f.Lock()
		defer f.Unlock()
		f.OnCreate = func(want ibv.QPCap) (ibv.QPCap, syscall.Errno) { return want, errno }
	}
	tell := func(e ibv.AsyncEvent) { f.Send(e); fakeibv.Receive(t, came) }
	down := func(part string) {
		t.Helper()
		for end := time.Now().Add(time.Minute); !strings.Contains(b.d.Down(), part) || part == "" && b.d.Down() != ""; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("down: %q, want %q; %q", b.d.Down(), part, b.log.Lines())
			}
		}
	}
	for round := 1; round <= 2; round++ {
		broken(syscall.EIO)
		tell(ibv.AsyncEvent{Kind: ibv.EventDeviceFatal})
		tell(ibv.AsyncEvent{Kind: ibv.EventDeviceFatal}) // again
		tell(ibv.AsyncEvent{Kind: ibv.EventPortActive, Port: 1})
		down("and does not work again yet: ibv_create_qp on a: ")
		f.Lock()
		f.Cards[0].Ports[0].State = 1
		f.Unlock()
		broken(0)
		b.c.Stir() // or a second passes; an event of the port would say that it is up
		down("the link is down")
		f.Lock()
		f.Cards[0].Ports[0].State = ibv.PortActive
		f.Unlock()
		tell(ibv.AsyncEvent{Kind: ibv.EventPortActive, Port: 1})
		down("")
		again := func() int { return b.log.Count("INFO NET a works again") }
		for end := time.Now().Add(time.Minute); again() < round && time.Now().Before(end); time.Sleep(time.Millisecond) { // it is up before it is said
		}
		if n, warned := again(), b.log.Count("WARN asynchronous event on a: device fatal error"); n != round || warned != 2*round {
			t.Errorf("round %d: %d times, %d warnings: %q", round, n, warned, b.log.Lines())
		}
	}
	broken(syscall.EIO)
	tell(ibv.AsyncEvent{Kind: ibv.EventDeviceFatal})
	f.Lock()
	f.OnCreate = nil
	f.Unlock()
	b.end() // also in an outage
}

// A driver that resets its card takes the device away and brings another: that is
// opened once nothing is left on the old one, and heard.
func TestCardThatIsBroughtAnewIsOpened(t *testing.T) {
	f := fakeibv.New(t, fakeibv.RoCE("a", "10.0.0.1", 1)).Eventful()
	b := newBench(t, f, nil)
	came := make(chan Event, 16)
	b.s.Subscribe(func(e Event) { came <- e })
	locked := func(do func()) {
		f.Lock()
		defer f.Unlock()
		do()
	}
	down := func(part string) {
		t.Helper()
		for end := time.Now().Add(time.Minute); !strings.Contains(b.d.Down(), part) || part == "" && b.d.Down() != ""; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("down: %q, want %q; %q", b.d.Down(), part, b.log.Lines())
			}
			b.c.Stir() // or a second passes
		}
	}
	locked(func() { f.Gone = map[ibv.Object]bool{b.c.Context(): true} })
	f.Send(ibv.AsyncEvent{Kind: ibv.EventDeviceFatal})
	fakeibv.Receive(t, came)
	down("opening it anew: connections or registrations of before are left on it")
	if err := errors.Join(b.cq.Close(), b.pd.Release()); err != nil {
		t.Fatal(err)
	}
	locked(func() { f.Cards[0].Name = "another" })
	down("opening it anew: the library lists it no more")
	locked(func() { f.Cards[0].Name = "a" })
	down("")
	again := func() int { return b.log.Count("INFO NET a works again") }
	for end := time.Now().Add(time.Minute); again() == 0 && time.Now().Before(end); time.Sleep(time.Millisecond) { // it is up before it is said
	}
	if b.log.Count("INFO NET a: the card was reopened after its fatal error") != 1 || again() != 1 || b.log.Count("WARN read events") != 0 {
		t.Errorf("%q", b.log.Lines())
	}
	f.Send(ibv.AsyncEvent{Kind: ibv.EventPortErr, Port: 1})
	fakeibv.Receive(t, came)
	down("the link is down")
	b.s.Close()
	if left := f.Left(); left != nil {
		t.Error(left)
	}
}

func TestMutedCardStaysInUse(t *testing.T) {
	f := fakeibv.New(t, fakeibv.RoCE("a", "10.0.0.1", 1)).Eventful()
	b := newBench(t, f, map[string]string{"NCCL_IB_RETURN_ASYNC_EVENTS": "0"})
	came := make(chan Event, 1)
	b.s.Subscribe(func(e Event) { came <- e })
	f.Send(ibv.AsyncEvent{Kind: ibv.EventDeviceFatal})
	if fakeibv.Receive(t, came); b.d.Down() != "" {
		t.Error(b.d.Down())
	}
	b.end()
}

func TestSubscribersFromManyGoroutines(t *testing.T) {
	f := fakeibv.New(t, fakeibv.RoCE("a", "10.0.0.1", 1)).Eventful()
	b := newBench(t, f, nil)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 50 {
				stop := b.s.Subscribe(func(Event) {})
				q, err := b.qp(0)
				if err != nil {
					t.Error(err)
					return
				}
				if err := errors.Join(q.Close()); err != nil {
					t.Error(err)
				}
				stop()
			}
		})
	}
	for range 20 {
		f.Send(ibv.AsyncEvent{Kind: ibv.EventDeviceFatal})
	}
	all.Wait()
	b.end()
}

// A subscriber that panics hears of it; the others and later events go on.
// A panic in the watch itself is told to everybody.
func TestPanicsConcernTheCard(t *testing.T) {
	f := fakeibv.New(t, fakeibv.RoCE("a", "10.0.0.1", 1)).Eventful()
	b := newBench(t, f, nil)
	broken, came := make(chan Event, 16), make(chan Event, 16)
	b.s.Subscribe(func(e Event) {
		broken <- e
		if e.Kind == ibv.EventSMChange {
			panic("a defect")
		}
	})
	b.s.Subscribe(func(e Event) { came <- e })
	for range 2 {
		f.Send(ibv.AsyncEvent{Kind: ibv.EventSMChange, Port: 1})
		fakeibv.Receive(t, broken)
		if e := fakeibv.Receive(t, broken); e.Kind != ibv.EventDeviceFatal || e.Err == nil || e.Err.Cause != report.Internal || !strings.Contains(e.Err.Error(), "a defect") {
			t.Errorf("%+v", e)
		}
		if e := fakeibv.Receive(t, came); e.Kind != ibv.EventSMChange || e.Err != nil {
			t.Errorf("%+v", e)
		}
	}
	if n := b.log.Count("WARN handle event on a", "a defect", "event_test.go"); n != 2 {
		t.Errorf("%d warnings with a stack: %q", n, b.log.Lines())
	}
	b.end()

	f = fakeibv.New(t, fakeibv.RoCE("a", "10.0.0.1", 1)).Eventful()
	start := make(chan struct{})
	s, _, _, log := hear(t, f, nil, func(lib *ibv.Calls) {
		lib.GetAsyncEvent = func(ibv.Object) (ibv.AsyncEvent, syscall.Errno) { <-start; panic("a defect") }
	})
	told := make(chan Event, 1)
	s.Subscribe(func(e Event) { told <- e })
	close(start)
	if e := fakeibv.Receive(t, told); e.Kind != ibv.EventDeviceFatal || e.Err == nil || log.Count("WARN read events on a", "a defect", "reader.go") != 1 {
		t.Errorf("%+v, %q", e, log.Lines())
	}
	s.Close()
}
