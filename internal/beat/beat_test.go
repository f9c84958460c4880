package beat

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"
)

func TestBeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said []time.Duration
		b := Start(func(since time.Duration) { said = append(said, since) })
		count := func(want int) {
			t.Helper()
			synctest.Wait()
			if len(said) != want {
				t.Fatalf("said %v, want %d times", said, want)
			}
		}
		time.Sleep(Patience)
		count(1)
		for range 20 { // others speak
			var out bytes.Buffer
			b.Writer(&out).Write([]byte("x"))
			time.Sleep(Patience / 2)
		}
		count(1)
		time.Sleep(2 * Patience)
		count(3)
		b.Stop()
		time.Sleep(5 * Patience)
		count(3)
	})
}
