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
