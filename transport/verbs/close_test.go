package verbs

import (
	"errors"
	"slices"
	"strings"
	"syscall"
	"testing"

	"weft/internal/knob"
	"weft/transport/verbs/ibv"
)

// A provider closes a card as soon as nothing is left on it, whichever of its
// protection domains goes last, and makes nothing new on it meanwhile.
func TestCloseEndsWithTheLastUse(t *testing.T) {
	for _, order := range [][]int{{}, {0}, {1}, {0, 1}, {1, 0}} { // domains by the order in which they go
		lib, host, f := directCard(t)
		p, err := Open(Config{Knobs: knob.Parse(map[string]string{"NCCL_IB_DATA_DIRECT": "2"}), Host: host, lib: lib})
		if err != nil {
			t.Fatal(err)
		}
		var pds [2]*PD
		for _, i := range order {
			if pds[i], err = p.Devices()[i].AcquirePD(); err != nil {
				t.Fatal(err)
			}
		}
		open := func() bool {
			return slices.ContainsFunc(f.left(), func(what string) bool { return strings.HasPrefix(what, "context of ") })
		}
		p.Close()
		p.Close()
		for n, i := range order {
			if !open() {
				t.Fatalf("%v: it is closed before domain %d", order, i)
			}
			if _, errno := p.adapters[0].queryPort(1); errno != 0 {
				t.Errorf("%v: asked before the last of %d went: %v", order, len(order)-n, errno)
			}
			if _, err := p.Devices()[i].AcquirePD(); err == nil || !strings.Contains(err.Error(), "is being closed") {
				t.Errorf("%v: a domain of a card that is being closed: %v", order, err)
			}
			if err := pds[i].Release(); err != nil {
				t.Error(err)
			}
		}
		if left := f.left(); left != nil {
			t.Errorf("%v: left %v", order, left)
		}
		_, err = p.Devices()[0].AcquirePD()
		if _, errno := p.adapters[0].queryPort(1); err == nil || errno != syscall.ENODEV {
			t.Errorf("%v: a card that is closed answers %v, %v", order, err, errno)
		}
	}
}

// A card that is in an outage, with a connection on it, is tried no more once its provider is closed.
func TestCloseEndsTrials(t *testing.T) {
	f := eventful(t, newFake(t, roce("a", "10.0.0.1", 1)))
	b := newBench(t, f, nil)
	came := make(chan Event, 1)
	b.d.Subscribe(func(e Event) { came <- e })
	f.send(t, ibv.AsyncEvent{Kind: ibv.EventDeviceFatal})
	receive(t, came)
	b.p.Close()
	f.mu.Lock()
	before := len(f.calls)
	f.mu.Unlock()
	b.d.adapter.stirs()
	b.d.adapter.fails()
	f.mu.Lock()
	if calls := f.calls[before:]; len(calls) != 0 {
		t.Errorf("it is tried: %v", calls)
	}
	f.mu.Unlock()
	if err := errors.Join(b.cq.Close(), b.pd.Release()); err != nil {
		t.Error(err)
	}
	if left := f.left(); left != nil {
		t.Errorf("left: %v", left)
	}
}
