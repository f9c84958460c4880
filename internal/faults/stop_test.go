package faults

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestStopped stops each side of full windows in both directions, with small socket
// buffers, and lets it go on: nothing fails, every byte is right.
func TestStopped(t *testing.T) {
	t.Parallel()
	still := duration("WEFT_TEST_STOP", 3*time.Second)
	for _, who := range []string{"sender", "receiver"} {
		t.Run(who, func(t *testing.T) {
			t.Parallel()
			// A timeout below the stop: a stopped process is no dead one.
			env := []string{"WEFT_TIMEOUT=1", "NCCL_SOCKET_SNDBUF=131072", "NCCL_SOCKET_RCVBUF=131072"}
			stopped(t, start(t, "rank 0", newest, env...), start(t, "rank 1", newest, env...), who, still)
		})
	}
}

func stopped(t *testing.T, a, b *peer, who string, still time.Duration) {
	t.Helper()
	there, back := join(a, b, 32<<20), join(b, a, 32<<20)
	f := traffic{size: 1 << 20, count: 60, window: 32, limit: 4*still + 2*patience}
	r, r2 := there.receiving(f), back.receiving(f)
	s, s2 := there.sending(f), back.sending(f)
	victim := a
	if who == "receiver" {
		victim = b
	}
	for range 2 {
		time.Sleep(30 * time.Millisecond)
		must(t, victim.h.Signal(unix.SIGSTOP), "stop")
		time.Sleep(still / 2)
		must(t, victim.h.Signal(unix.SIGCONT), "continue")
	}
	_, err := s.Wait()
	must(t, err, "sender")
	_, err = s2.Wait()
	must(t, err, "sender of the other direction")
	arrived(t, r)
	arrived(t, r2)
}
