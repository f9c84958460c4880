package collnet

import (
	"testing"
	"time"

	"weft/abi"
	"weft/internal/report"
)

// until waits for what another goroutine does.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(testLimit); !is(); time.Sleep(100 * time.Microsecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within %v", what, testLimit)
		}
	}
}

// The goroutine rests after a while, is woken by what is posted then, and does what the host never asks after.
func TestHostThatDoesNotTest(t *testing.T) {
	w, all := inMemory(t, 3, 64<<10)
	for range 3 {
		for _, m := range all {
			until(t, "the goroutine rests", m.idle.Load)
		}
		each(all, func(m *member) {
			b := m.memory(64)
			defer b.end()
			request := m.began(func() (uintptr, error) { return m.AllReduce(b.Buf, b.Buf, 16, abi.Float32, abi.Sum) })
			until(t, "an operation ends", func() bool { done, _, code := m.words.test(request); return done || code != 0 })
		})
	}
	w.end(t, all)
}

// prompt is a link whose peer does its part whenever this end asks for something.
type prompt struct {
	Link
	peer *Comm
}

func (l prompt) Send(b Buffer, tag int32) (uintptr, error) {
	l.peer.Help()
	return l.Link.Send(b, tag)
}

func (l prompt) Test(request uintptr) (bool, int, error) {
	l.peer.Help()
	return l.Link.Test(request)
}

// The host's thread comes back from an operation of which everything moves, and nothing is computed.
func TestHelpIsBounded(t *testing.T) {
	w, all := inMemory(t, 2, 4<<10)
	const part = 1 << 20 // of 256 chunks
	var requests [2]uintptr
	var buffers [2]*buffer
	for r, m := range all {
		buffers[r] = m.memory(2 * part)
	}
	gather := func(r int) {
		requests[r] = all[r].began(func() (uintptr, error) {
			b := buffers[r]
			return all[r].AllGather(b.at(r*part), []Part{{b.Buf, 2 * part}}, Window{part, 0, 2 * part})
		})
	}
	gather(1)
	m := all[0]
	m.pass.Lock() // neither its goroutine nor the call that follows works
	for _, track := range m.tracks {
		track.sends[1], track.receives[1] = prompt{track.sends[1], all[1].Comm}, prompt{track.receives[1], all[1].Comm}
	}
	gather(0)
	m.help()
	if limit := mostSteps * len(m.tracks); m.chunks == 0 || m.chunks > limit {
		t.Errorf("%d chunks were begun by one call, at most %d may be", m.chunks, limit)
	}
	m.pass.Unlock()
	for r, request := range requests {
		if _, code := all[r].wait(request); code != 0 {
			t.Errorf("rank %d: code %d", r, code)
		}
		buffers[r].end()
	}
	w.end(t, all)
}

// While the goroutine, or a close, has the comm, Help does not wait; of a comm that is closed it does nothing.
func TestHelpNeverWaits(t *testing.T) {
	w, all := inMemory(t, 2, 64<<10)
	m := all[0]
	m.pass.Lock()
	if m.Help() {
		t.Error("helps beside another")
	}
	m.pass.Unlock()
	w.end(t, all)
	if !m.Help() {
		t.Error("a closed comm wants work")
	}
}

// A panic on the host's thread ends the comm, not the host.
func TestHelpPanics(t *testing.T) {
	w, all := inMemory(t, 2, 64<<10)
	host := make(chan struct{})
	w.mu.Lock()
	w.fault = func(from, to int) error {
		select {
		case <-host:
			return report.Errorf(report.Peer, "link", "the peer has ended")
		default:
			close(host)
			panic("made by the test")
		}
	}
	w.mu.Unlock()
	m := all[0]
	b := m.memory(64)
	request := m.began(func() (uintptr, error) { return m.AllReduce(b.Buf, b.Buf, 16, abi.Float32, abi.Sum) })
	if _, code := m.wait(request); code != 100+int32(report.Internal) {
		t.Errorf("code %d, %v", code, m.log.Lines())
	}
	b.end()
	w.end(t, all)
}
