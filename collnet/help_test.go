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

// Small operations are the host's to move, of whatever kind, and no others.
func TestWhoseWork(t *testing.T) {
	w, all := inMemory(t, 2, 64<<10)
	each(all, func(m *member) {
		b := m.memory(4 * mostSmall)
		defer b.end()
		for _, c := range []struct {
			name string
			post func() (uintptr, error)
			want bool
		}{
			{"small", func() (uintptr, error) { return m.AllReduce(b.Buf, b.Buf, mostSmall, abi.Int8, abi.Sum) }, true},
			{"large", func() (uintptr, error) { return m.AllReduce(b.Buf, b.Buf, mostSmall+1, abi.Int8, abi.Sum) }, false},
			{"a small part of what is large", func() (uintptr, error) {
				return m.AllGather(b.at(m.rank*mostSmall), []Part{{b.Buf, 2 * mostSmall}}, Window{mostSmall, 0, 2 * mostSmall})
			}, false},
			{"parts that are small together", func() (uintptr, error) {
				return m.ReduceScatter([]Part{{b.Buf, mostSmall / 2}, {b.at(mostSmall), mostSmall / 2}}, b.at(2*mostSmall), Window{mostSmall / 2, 0, mostSmall}, abi.Int8, abi.Sum)
			}, true},
		} {
			request := m.began(c.post)
			if got := m.words.helped(request); got != c.want {
				t.Errorf("%s: helped %v", c.name, got)
			}
			if _, code := m.wait(request); code != 0 {
				t.Errorf("%s: code %d", c.name, code)
			}
		}
	})
	w.end(t, all)
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
