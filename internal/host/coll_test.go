package host_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"weft/internal/build"
	"weft/internal/host"
)

// collRank is one rank's process and its comm.
type collRank struct {
	h            *host.Host
	c            *host.Coll
	listen, comm host.Ptr
}

// group connects n processes through the good collNet.
func group(t *testing.T, n, version int) []*collRank {
	t.Helper()
	path, err := build.Plugin("tools/host/testdata/coll.c")
	if err != nil {
		t.Fatal(err)
	}
	ranks, handles := make([]*collRank, n), make([][]byte, n)
	for i := range ranks {
		r := &collRank{h: start(t, host.Options{Name: fmt.Sprint("rank", i)})}
		lib, err := r.h.Load(path)
		if err != nil {
			t.Fatal(err)
		}
		if r.c, err = lib.BindColl(version); err != nil {
			t.Fatal(err)
		}
		if err := r.c.Init(); err != nil {
			t.Fatal(err)
		}
		if handles[i], r.listen, err = r.c.Listen(0); err != nil {
			t.Fatal(err)
		}
		ranks[i] = r
	}
	each(t, ranks, func(i int, r *collRank) (err error) {
		r.comm, err = r.c.Connect(handles, i, r.listen, 20*time.Second)
		return err
	})
	return ranks
}

func each(t *testing.T, ranks []*collRank, do func(i int, r *collRank) error) {
	t.Helper()
	errs := make([]error, len(ranks))
	var wg sync.WaitGroup
	for i, r := range ranks {
		wg.Go(func() { errs[i] = do(i, r) })
	}
	wg.Wait()
	for i, err := range errs {
		if err != nil {
			t.Fatalf("rank %d: %v", i, err)
		}
	}
}

// TestEveryCollNetTable has each table that the C host calls by hand carry out every collective: the plugin is written by hand as well.
func TestEveryCollNetTable(t *testing.T) {
	const n, count, room = 3, 1001, 1 << 16
	first, _ := host.FamilyColl.Versions()
	for v := first; v <= host.FamilyColl.Witness(); v++ {
		t.Run(fmt.Sprintf("v%d", v), func(t *testing.T) {
			t.Parallel()
			ranks := group(t, n, v)
			kinds := []string{"allreduce"}
			if ranks[0].c.Gathers() {
				kinds = append(kinds, "allgather", "reducescatter", "broadcast")
			}
			each(t, ranks, func(i int, r *collRank) error {
				base, err := r.h.Alloc(3 * room)
				if err != nil {
					return err
				}
				mh, err := r.c.RegMr(r.comm, base, 3*room)
				if err != nil {
					return err
				}
				for _, kind := range kinds {
					for _, op := range []host.RedOp{host.Sum, host.Max} {
						rep, err := r.h.Call(r.c.Data, "coll.run", host.Args{"kind", kind, "comm", r.comm, "send", base, "recv", base + room, "flag", base + 2*room, "smh", mh, "rmh", mh,
							"type", int(host.Float32), "op", int(op), "root", 1, "rank", i, "nranks", n, "count", count, "iters", 2, "piece", 1000, "window", 3})
						if err != nil || rep.Int("wrong") != 0 || rep.Float("us") <= 0 {
							return fmt.Errorf("%s %v: %v (%w)", kind, op, rep.Values, err)
						}
					}
				}
				for _, err := range []error{r.c.DeregMr(r.comm, mh), r.c.CloseColl(r.comm), r.c.CloseListen(r.listen), r.c.Finalize()} {
					if err != nil {
						return err
					}
				}
				return nil
			})
		})
	}
}
