package ranks_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"weft/internal/ranks"
)

// notes keeps what is said, and tells when something is.
type notes struct {
	mu   sync.Mutex // protects text
	text []string
	said chan struct{}
}

func newNotes() *notes { return &notes{said: make(chan struct{}, 64)} }

func (n *notes) add(format string, a ...any) {
	n.mu.Lock()
	n.text = append(n.text, fmt.Sprintf(format, a...))
	n.mu.Unlock()
	select {
	case n.said <- struct{}{}:
	default:
	}
}

// await returns the first line with all parts.
func (n *notes) await(t *testing.T, parts ...string) {
	t.Helper()
	late := time.After(time.Minute)
	for {
		n.mu.Lock()
		text := n.text
		n.mu.Unlock()
	lines:
		for _, line := range text {
			for _, p := range parts {
				if !strings.Contains(line, p) {
					continue lines
				}
			}
			return
		}
		select {
		case <-n.said:
		case <-late:
			t.Fatalf("nobody said %q:\n%s", parts, strings.Join(text, "\n"))
		}
	}
}

// Each rank may know rank 0 by another address, as on three hosts with a cable and a subnet between any two.
func TestJoinByDifferentAddresses(t *testing.T) {
	own := ownAddr(t)
	_, port, _ := net.SplitHostPort(freeAddr(t))
	var wg sync.WaitGroup
	errs := make([]error, 3)
	for rank, host := range []string{own, own, "127.0.0.1"} {
		wg.Go(func() {
			g, err := ranks.Join(context.Background(), ranks.JoinOptions{Addrs: []string{net.JoinHostPort(host, port)}, By: "--join", Rank: rank, Size: 3, Token: "t", Limit: 20 * time.Second})
			if err == nil {
				_, err = g.Gather("x", nil)
			}
			errs[rank] = err
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
}

func ownAddr(t *testing.T) string {
	t.Helper()
	all, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok && n.IP.IsGlobalUnicast() {
			return n.IP.String()
		}
	}
	t.Skip("this machine has no address but loopback")
	return ""
}

// A rank 0 that does not have the address it is given says so, and for whom it waits.
func TestJoinAtAForeignAddress(t *testing.T) {
	_, port, _ := net.SplitHostPort(freeAddr(t))
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	zero, two := newNotes(), newNotes()
	done := make(chan error, 2)
	join := func(rank int, addr string, n *notes) {
		_, err := ranks.Join(ctx, ranks.JoinOptions{Addrs: []string{net.JoinHostPort(addr, port)}, By: "--join", Rank: rank, Size: 4, Token: "t", Limit: time.Minute, Every: time.Second, Note: n.add})
		done <- err
	}
	go join(0, "203.0.113.77", zero)
	zero.await(t, "203.0.113.77 is no address of this machine")
	zero.await(t, "waiting for ranks 1, 2, 3")
	go join(2, "127.0.0.1", two) // it listens everywhere all the same
	zero.await(t, "still waiting for ranks 1, 3")
	cancel()
	<-done
}

// A rank that is told an address of its own machine, where no rank 0 is, hears that.
func TestJoinAtOnesOwnAddress(t *testing.T) {
	own := ownAddr(t)
	_, port, _ := net.SplitHostPort(freeAddr(t))
	ctx, cancel := context.WithCancel(context.Background())
	n := newNotes()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = ranks.Join(ctx, ranks.JoinOptions{Addrs: []string{net.JoinHostPort(own, port)}, By: "--join", Rank: 1, Size: 2, Token: "t", Limit: time.Minute, Note: n.add})
	}()
	n.await(t, own+" is an address of this machine", "rank 0")
	cancel()
	<-done
}
