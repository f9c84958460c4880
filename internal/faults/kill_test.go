package faults

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"weft/internal/host"
)

// TestKilled kills a process at random points of its life, half of the time while a
// child that it forked lives on: whatever the survivor waits for ends in an error
// within T, and nothing of it is done with wrong bytes.
func TestKilled(t *testing.T) {
	points := setting("WEFT_TEST_KILLS", 16)
	rng := rand.New(rand.NewPCG(1, uint64(points)))
	slots := make(chan struct{}, 4)
	var wg sync.WaitGroup
	for i := range points {
		at := time.Duration(rng.IntN(60_000)) * time.Microsecond
		forked, victimSends, version := i%2 == 1, i%4 >= 2, []int{newest, 6, 4, 9}[i/4%4]
		wg.Add(1)
		slots <- struct{}{}
		go func() {
			defer wg.Done()
			defer func() { <-slots }()
			t.Run(fmt.Sprintf("%d_v%d_at_%v_forked_%v_sends_%v", i, version, at, forked, victimSends), func(t *testing.T) {
				begin := func(name string, env ...string) *peer { return start(t, name, version, env...) }
				kill(t, begin, at, forked, victimSends)
			})
		}()
	}
	wg.Wait()
}

// kill has begin start a victim, a survivor and a third process.
func kill(t *testing.T, begin func(name string, env ...string) *peer, at time.Duration, forked, victimSends bool) {
	env := []string{"WEFT_TIMEOUT=2", "WEFT_CONNECT_TIMEOUT=5", "WEFT_ACCEPT_TIMEOUT=5"}
	victim, other := begin("victim", env...), begin("survivor", env...)
	var child *host.ChildResult
	if forked {
		var err error
		child, err = victim.h.Fork("main", time.Minute, true)
		must(t, err, "fork")
		defer killPID(child.PID)
	}
	time.AfterFunc(at, func() {
		victim.h.Kill()
	})
	err := life(victim, other, victimSends)
	var dead *host.DeathError
	if errors.As(err, &dead) && !dead.Expected {
		t.Fatalf("the survivor died or hung: %v", err)
	}
	if host.TimedOut(err) {
		t.Fatalf("the survivor still waits: %v", err)
	}
	if err == nil {
		t.Fatal("no error reached the survivor")
	}
	if c := host.Code(err); c != host.HostError && c != host.RemoteError && !(c == host.SystemError && other.n.Version < host.SinceRemoteError) {
		t.Errorf("the survivor got %v", err)
	}
	// It is well: it serves others.
	third := begin("third", env...)
	join(third, other, 16384).move(traffic{size: 4096, count: 3, window: 2})
	if err := other.h.Close(); err != nil {
		t.Errorf("end of the survivor: %v", err)
	}
}

// life connects and moves data for ever; it returns the survivor's first error.
func life(victim, other *peer, victimSends bool) error {
	tx, rx := other, victim
	if victimSends {
		tx, rx = victim, other
	}
	for {
		if err := once(tx, rx, other); err != nil {
			return err
		}
	}
}

// once is a connection and some traffic. The survivor's limits are the time T that
// an error may take, and more: reaching them is what must not happen.
func once(tx, rx, other *peer) error {
	const limit = 20 * time.Second
	at, lc, err := rx.n.Listen(0)
	if err != nil {
		return err
	}
	handle, err := rx.h.Read(at, int64(rx.n.HandleSize()))
	if err != nil {
		return err
	}
	to, err := tx.h.Alloc(128)
	if err != nil {
		return err
	}
	if err := tx.h.Write(to, handle); err != nil {
		return err
	}
	w := tx.h.Go(tx.n.Setup, "net.connect", host.Args{"on", tx.n.As, "ctx", tx.n.Ctx, "dev", 0, "handle", to, "poll", 1, "limit", limit})
	var recv host.Ptr
	if rx == other && other.n.Version >= host.SinceGroups {
		// accept never fails for want of a peer: poll it while the connecting side lives.
		for recv == 0 && tx.h.Err() == nil {
			if recv, err = rx.n.Accept(lc); err != nil {
				return err
			}
		}
		if recv == 0 {
			if err := rx.n.CloseListen(lc); err != nil {
				return err
			}
			return &host.ResultError{Call: "accept", Code: host.RemoteError}
		}
	} else if recv, err = rx.n.AcceptPoll(lc, limit); err != nil && rx == other {
		return err
	}
	r, err := w.Wait()
	if err != nil && tx == other {
		return err
	}
	if recv == 0 || r.Ptr("comm") == 0 {
		return errors.Join(err, rx.h.Err(), tx.h.Err())
	}
	const size = 1 << 20
	c := &conn{tx: tx, rx: rx, send: r.Ptr("comm"), recv: recv, size: size}
	if c.a, c.amh, err = buffer(tx, c.send, size); err != nil {
		return err
	}
	if c.b, c.bmh, err = buffer(rx, c.recv, size); err != nil {
		return err
	}
	f := traffic{size: 50_000, count: 40, window: 8, limit: limit}
	receiving, sending := c.receiving(f), c.sending(f)
	got, errR := receiving.Wait()
	_, errS := sending.Wait()
	if errR == nil && got.Int("bad") != 0 {
		return fmt.Errorf("%d messages came with wrong bytes", got.Int("bad"))
	}
	if other == rx {
		return errR
	}
	return errS
}

func buffer(p *peer, comm host.Ptr, size int64) (at, mh host.Ptr, err error) {
	if at, err = p.h.Alloc(size); err == nil {
		mh, err = p.n.RegMr(comm, at, size)
	}
	return at, mh, err
}
