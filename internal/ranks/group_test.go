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

// freeAddr is an address of this machine that nobody listens at.
func freeAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func joined(t *testing.T, n int) []ranks.Group {
	t.Helper()
	addr := freeAddr(t)
	groups, errs := make([]ranks.Group, n), make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Add(1)
		go func() {
			defer wg.Done()
			groups[i], errs[i] = ranks.Join(context.Background(), ranks.JoinOptions{Addrs: []string{addr}, Rank: i, Size: n, Token: "t", Limit: 20 * time.Second})
		}()
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	return groups
}

var kinds = map[string]func(*testing.T, int) []ranks.Group{
	"local":  func(t *testing.T, n int) []ranks.Group { return ranks.Local(n, 20*time.Second) },
	"joined": joined,
}

func each(groups []ranks.Group, f func(g ranks.Group) error) error {
	errs := make([]error, len(groups))
	var wg sync.WaitGroup
	for i, g := range groups {
		wg.Add(1)
		go func() {
			defer wg.Done()
			errs[i] = f(g)
		}()
	}
	wg.Wait()
	return errors.Join(errs...)
}

func TestGather(t *testing.T) {
	for name, make := range kinds {
		t.Run(name, func(t *testing.T) {
			err := each(make(t, 4), func(g ranks.Group) error {
				for round := range 50 {
					all, err := g.Gather(fmt.Sprint("round", round), fmt.Appendf(nil, "%d/%d", g.Rank(), round))
					if err != nil {
						return err
					}
					for r := range all {
						if want := fmt.Sprintf("%d/%d", r, round); string(all[r]) != want {
							return fmt.Errorf("rank %d has %q instead of %q", g.Rank(), all[r], want)
						}
					}
				}
				g.Leave()
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAbort(t *testing.T) {
	for name, make := range kinds {
		t.Run(name, func(t *testing.T) {
			err := each(make(t, 3), func(g ranks.Group) error {
				if g.Rank() == 2 {
					g.Abort(errors.New("out of paper"))
					return nil
				}
				_, err := g.Gather("x", nil)
				var a *ranks.AbortError
				if !errors.As(err, &a) || a.Rank != 2 || !strings.Contains(err.Error(), "out of paper") {
					return fmt.Errorf("rank %d saw %v", g.Rank(), err)
				}
				<-g.Failed()
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

func TestJoinRefusals(t *testing.T) {
	for _, c := range []struct {
		name, want string
		o          ranks.JoinOptions
	}{
		{"token", "token is not ours", ranks.JoinOptions{Rank: 1, Size: 2, Token: "other"}},
		{"size", "says --nranks 3", ranks.JoinOptions{Rank: 1, Size: 3, Token: "t"}},
		{"rank", "no rank 7", ranks.JoinOptions{Rank: 7, Size: 2, Token: "t"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			addr := freeAddr(t)
			ctx, cancel := context.WithCancel(context.Background())
			zero := make(chan error, 1)
			go func() {
				_, err := ranks.Join(ctx, ranks.JoinOptions{Addrs: []string{addr}, Size: 2, Token: "t", Limit: 20 * time.Second})
				zero <- err
			}()
			c.o.Addrs, c.o.Limit = []string{addr}, 20*time.Second
			_, err := ranks.Join(context.Background(), c.o)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("want %q, have %v", c.want, err)
			}
			cancel()
			if err := <-zero; err == nil {
				t.Error("rank 0 has a group without rank 1")
			}
		})
	}
}

// Strangers do not keep the ranks from meeting.
func TestJoinStrangers(t *testing.T) {
	addr := freeAddr(t)
	done := make(chan error, 1)
	go func() {
		g, err := ranks.Join(context.Background(), ranks.JoinOptions{Addrs: []string{addr}, Size: 2, Token: "t", Limit: 20 * time.Second})
		if err == nil {
			_, err = g.Gather("x", nil)
		}
		done <- err
	}()
	for _, text := range []string{"GET / HTTP/1.1\r\n\r\n", "weft-run 1 1 2 zz\n", strings.Repeat("x", 100_000), ""} {
		for range 100 {
			c, err := net.Dial("tcp", addr)
			if err != nil {
				time.Sleep(10 * time.Millisecond)
				continue
			}
			fmt.Fprint(c, text)
			if text != "" { // the last one stays, and says nothing
				c.Close()
			} else {
				defer c.Close()
			}
			break
		}
	}
	g, err := ranks.Join(context.Background(), ranks.JoinOptions{Addrs: []string{addr}, Rank: 1, Size: 2, Token: "t", Limit: 20 * time.Second})
	if err == nil {
		_, err = g.Gather("x", nil)
	}
	if err := errors.Join(err, <-done); err != nil {
		t.Error(err)
	}
}
