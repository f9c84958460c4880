package release

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"weft/internal/build"
	"weft/internal/link"
	"weft/internal/ranks"
)

// full are the releases whose whole order of calls is run; the others follow by data.
var full = []string{"2.4.8", "2.8.4", "2.12.12", "2.18.6", "2.22.3", "2.26.6", "2.28.3", "2.28.9", "2.29.7", "2.30.7", "2.32.3"}

func releases(t *testing.T) []*Release {
	t.Helper()
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func find(t *testing.T, name string) *Release {
	t.Helper()
	r, err := Find(name)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// setup is where the library lies: its folder is searched by dlopen.
func setup(t *testing.T) Options {
	t.Helper()
	lib, err := build.Library()
	if err != nil {
		t.Fatal(err)
	}
	if lib == build.Self {
		t.Skip("the tables are inside the host: there is no file to look for")
	}
	bin, err := build.Host()
	if err != nil {
		t.Fatal(err)
	}
	// What a user installs: the library and its links.
	dir := t.TempDir()
	for _, name := range append([]string{link.Name}, link.Links...) {
		if err := os.Symlink(lib, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	weft := "weft"
	return Options{Host: bin, Env: []string{"LD_LIBRARY_PATH=" + dir}, NetPlugin: &weft}
}

// world runs one process for each rank and f in each; the first failure ends all.
func world(t *testing.T, r *Release, o Options, size int, f func(p *Process, g ranks.Group) error) {
	t.Helper()
	groups := ranks.Local(size, 60e9)
	errs := make([]error, size)
	var wg sync.WaitGroup
	for i, g := range groups {
		wg.Add(1)
		go func() {
			defer wg.Done()
			o := o
			o.Name = fmt.Sprintf("rank %d", i)
			p, err := Start(r, o)
			if err == nil {
				err = f(p, g)
				if closing := p.Close(); err == nil {
					err = closing
				}
			}
			if err != nil {
				g.Abort(err)
				if p != nil && len(p.Tried) > 0 {
					err = fmt.Errorf("%w (tried %q)", err, p.Tried)
				}
			}
			errs[i] = err
		}()
	}
	wg.Wait()
	for i, err := range errs {
		if other := (*ranks.AbortError)(nil); err != nil && !errors.As(err, &other) {
			t.Errorf("%v, rank %d: %v", r, i, err)
		}
	}
}

// TestEveryRelease runs a ring of two under each release since 2.4.2.
func TestEveryRelease(t *testing.T) {
	o := setup(t)
	for _, r := range releases(t) {
		t.Run(r.Release.Release, func(t *testing.T) {
			t.Parallel()
			world(t, r, o, 2, func(p *Process, g ranks.Group) error {
				c, err := p.Init(1)
				if err != nil {
					return err
				}
				ring, err := c.Connect(g, 0)
				if err != nil {
					return err
				}
				if c.plug.table != r.Net[0] {
					return fmt.Errorf("bound v%d, the newest it knows is v%d", c.plug.table, r.Net[0])
				}
				if err := ring.Reduce(10000, 1); err != nil {
					return err
				}
				if err := ring.Close(); err != nil {
					return err
				}
				return c.Destroy()
			})
		})
	}
}

// TestCallOrder runs the whole life of communicators under chosen releases: two side
// by side, all protocols, a split, one destroyed while the others live, the end of
// all (which unloads the library where the release does), and a new start.
func TestCallOrder(t *testing.T) {
	o := setup(t)
	for _, name := range full {
		for _, amd := range []bool{false, true} {
			r := find(t, name)
			if amd {
				if r.Code < 20600 || r.Code > 23102 {
					continue // RCCL has no such base
				}
				r = r.AMD()
			}
			t.Run(r.String(), func(t *testing.T) {
				t.Parallel()
				world(t, r, o, 3, life)
			})
		}
	}
}

func life(p *Process, g ranks.Group) error {
	for round := range uint64(2) {
		first, err := p.Init(round*10 + 1)
		if err != nil {
			return fmt.Errorf("round %d: %w", round, err)
		}
		ring, err := first.Connect(g, 0)
		if err != nil {
			return fmt.Errorf("round %d: %w", round, err)
		}
		for _, proto := range protocols {
			if err := ring.Steps(proto, 20); err != nil {
				return fmt.Errorf("round %d, buffer %d: %w", round, proto.buffer, err)
			}
		}
		second, err := p.Init(round*10 + 2)
		if err != nil {
			return fmt.Errorf("second communicator: %w", err)
		}
		ring2, err := second.Connect(g, len(second.Props)-1)
		if err != nil {
			return fmt.Errorf("second communicator: %w", err)
		}
		child, err := first.Split(round*10 + 3)
		if err != nil {
			return fmt.Errorf("split: %w", err)
		}
		ring3, err := child.Connect(g, 0)
		if err != nil {
			return fmt.Errorf("split: %w", err)
		}
		for i, r := range []*Ring{ring, ring2, ring3} {
			if err := r.Reduce(50000, i); err != nil {
				return fmt.Errorf("communicator %d: %w", i, err)
			}
		}
		// The parent goes first; its child and the other one work on.
		for _, step := range []func() error{ring.Close, first.Destroy, func() error { return ring3.Reduce(1000, 9) },
			ring2.Close, second.Destroy, func() error { return ring3.Reduce(1000, 10) }, ring3.Close, child.Destroy} {
			if err := step(); err != nil {
				return fmt.Errorf("round %d, teardown: %w", round, err)
			}
		}
		if _, err := g.Gather(fmt.Sprint("round ", round), nil); err != nil {
			return err
		}
	}
	return nil
}
