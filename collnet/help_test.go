package collnet

import (
	"slices"
	"testing"
	"time"

	"weft/abi"
	"weft/collnet/choose"
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

// asking is a link that remembers which requests are asked after.
type asking struct {
	Link
	asked map[uintptr]bool
}

func (l asking) Test(request uintptr) (bool, int, error) {
	l.asked[request] = true
	return l.Link.Test(request)
}

// Receives of later rounds are posted early, but nobody asks after them before their round.
func TestLaterRoundsAreNotAskedAfter(t *testing.T) {
	w, all := inMemory(t, 8, 64<<10)
	const count = 16
	slow := choose.Of(choose.Fabric{N: len(all), Path: choose.Path{Gap: time.Millisecond, Bandwidth: 1e9}}) // doubling: three rounds
	for _, m := range all {
		m.pass.Lock()
		m.choices = slow
		m.pass.Unlock()
	}
	var requests [8]uintptr
	var buffers [8]*buffer
	reduce := func(r int) {
		buffers[r] = all[r].memory(8 * count)
		requests[r] = all[r].began(func() (uintptr, error) {
			return all[r].AllReduce(buffers[r].Buf, buffers[r].at(4*count), count, abi.Float32, abi.Sum)
		})
	}
	m, first, asked := all[0], all[4], map[uintptr]bool{}
	reduce(4) // it takes what rank 0 sends it in the first round
	first.pass.Lock()
	m.pass.Lock() // neither its goroutine nor the call that follows works
	for _, track := range m.tracks {
		for rank, l := range track.receives {
			if l != nil {
				track.receives[rank] = asking{l, asked}
			}
		}
	}
	reduce(0)
	for range 3 {
		m.help()
	}
	later := 0
	for _, track := range m.tracks {
		for _, one := range track.receiving {
			if one.round == track.round {
				continue
			}
			later++
			if asked[one.request] || slices.Contains(m.awaited, one.request) {
				t.Errorf("round %d: a receive of round %d is asked after", track.round, one.round)
			}
		}
	}
	if later == 0 || len(asked) == 0 || len(m.awaited) < 2 {
		t.Errorf("%d receives of later rounds are posted, %d requests were asked after, %d awaited: want some of each", later, len(asked), len(m.awaited))
	}
	m.pass.Unlock()
	first.pass.Unlock()
	for r := range all {
		if requests[r] == 0 {
			reduce(r)
		}
	}
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
