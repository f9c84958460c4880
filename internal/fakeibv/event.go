package fakeibv

import (
	"os"
	"testing"
	"time"

	"weft/transport/verbs/ibv"
)

// Eventful gives the library's cards a descriptor for events.
func (f *Lib) Eventful() *Lib {
	f.events = make(chan ibv.AsyncEvent, 16)
	r, w, err := os.Pipe()
	if err != nil {
		f.t.Fatal(err)
	}
	f.pipe = [2]*os.File{r, w}
	f.t.Cleanup(func() { r.Close(); w.Close() })
	return f
}

// Send has the cards say an event.
func (f *Lib) Send(e ibv.AsyncEvent) {
	f.events <- e
	if _, err := f.pipe[1].Write([]byte{1}); err != nil {
		f.t.Fatal(err)
	}
}

// Receive waits for a value of a channel.
func Receive[T any](t testing.TB, from <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-from:
	case <-time.After(time.Minute):
		t.Fatal("nothing came within a minute")
	}
	return v
}
