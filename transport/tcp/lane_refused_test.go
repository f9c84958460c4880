package tcp_test

import (
	"testing"
	"time"

	"weft/internal/hostcalls"
)

// Whoever asks again about a refused request hears the same, and a comm that refuses
// more groups than it has slots for requests goes on.
func TestRefusedAgain(t *testing.T) {
	tx, rx := connected(t, 1, 108)
	const own = 3 // what a send comm returns without a core that names a code
	type pair struct{ send, recv uintptr }
	var all []pair
	for seq := range uint64(600) {
		in, _ := hostcalls.Irecv(rx.handle, rx.buf(0, 8, 0))
		out := isend(t, tx, tx.buf(0, waitsForCTS, 0)) // the sender refuses it
		rc := int32(0)
		for end := time.Now().Add(30 * time.Second); rc == 0 && time.Now().Before(end); {
			_, _, rc = hostcalls.Test(out)
			hostcalls.Test(in) // as hosts do: it takes in what comes
		}
		if rc != own {
			t.Fatalf("refusal %d: the send ends with %d", seq, rc)
		}
		if ok, err := rx.comm.RefuseGroup(seq+1, 55, func() {}); err != nil || !ok {
			t.Fatalf("refusal %d: %v, %v", seq, ok, err)
		}
		all = append(all, pair{out, in})
		for range 3 {
			if done, _, rc := hostcalls.Test(out); !done || rc != own {
				t.Fatalf("refusal %d: test of the send: done %v, code %d", seq, done, rc)
			}
			if done, _, rc := hostcalls.Test(in); !done || rc != 55 {
				t.Fatalf("refusal %d: test of the receive: done %v, code %d", seq, done, rc)
			}
		}
	}
	for i, p := range all[len(all)-50:] {
		if _, _, rc := hostcalls.Test(p.send); rc != own {
			t.Errorf("the send %d from the last: code %d", 50-i, rc)
		}
		if _, _, rc := hostcalls.Test(p.recv); rc != 55 {
			t.Errorf("the receive %d from the last: code %d", 50-i, rc)
		}
	}
	for range len(all) {
		in, _ := hostcalls.Irecv(rx.handle, rx.buf(0, 8, 0))
		if _, rc := hostcalls.Finish(t, isend(t, tx, tx.buf(0, 8, 0)), in); rc != 0 {
			t.Fatalf("the comm must live on: code %d", rc)
		}
	}
}
