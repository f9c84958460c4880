package faults

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"weft/internal/host"
	"weft/internal/simverbs"
)

// TestMemberFails has one device of two that are one, or both, fail under a connection with several messages under
// way. What is under way ends in an error on both sides, and none of it is done with wrong bytes; a line names the
// device. The next connection goes over the member that is left, over TCP where none is, and over both once they work.
func TestMemberFails(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name        string
		fault, mend []string
		names       string // the device of the sender that the lines name, which is joined with the one that fails or fails itself
		left        string // the member of the sender that carries on
	}{
		{"link of the first", []string{"link left/sim0 down"}, []string{"link left/sim0 up"}, "sim0", "sim1"},
		{"link of the second", []string{"link left/sim1 down"}, []string{"link left/sim1 up"}, "sim1", "sim0"},
		{"link of the receiver's second", []string{"link right/sim3 down"}, []string{"link right/sim3 up"}, "sim1", "sim0"},
		{"both links", []string{"link left/sim0 down", "link left/sim1 down"}, []string{"link left/sim0 up", "link left/sim1 up"}, "sim", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newFusedWorld(t, newest, 2)
			for i := range w.Devices {
				w.Devices[i].Rate = slow
			}
			env := []string{"WEFT_TIMEOUT=4", "WEFT_LAZY=off"}
			a, b := w.start("left", newest, env...), w.start("right", newest, env...)
			for _, p := range []*peer{a, b} {
				_, err := p.fuse(0, 1)
				must(t, err, "makeVDevice")
			}
			over := func(mark int) (members string) {
				for _, l := range said(a, mark) {
					for _, m := range []string{"sim0", "sim1"} {
						if strings.Contains(l, "GIDs") && (strings.Contains(l, "over "+m+" ") || strings.Contains(l, ", "+m+" ")) {
							members += m
						}
					}
				}
				return members
			}
			x := join(a, b, 16<<20)
			x.move(traffic{size: 100_000, count: 20, window: 4})
			if got := over(0); got != "sim0sim1" {
				t.Fatalf("over %q: %q", got, said(a, 0))
			}
			f := traffic{size: 4 << 20, count: 400, window: 4, limit: deathLimit}
			r, s := x.receiving(f), x.sending(f)
			for _, p := range []*peer{a, b} { // it is under way
				settle(t, "queue pairs", func() (string, bool) { o := w.count(p); return fmt.Sprintf("%+v", o), o.QPs >= 2 })
			}
			marks := [2]int{marked(a), marked(b)}
			w.command(a, c.fault...)
			_, errS := s.Wait()
			got, errR := r.Wait()
			for what, err := range map[string]error{"sender": errS, "receiver": errR} {
				if code := host.Code(err); err == nil || stuck(err) || code != host.RemoteError && code != host.SystemError {
					t.Errorf("%s: %v", what, err)
				}
			}
			if n := got.Int("bad"); n != 0 {
				t.Errorf("%d bytes are wrong", n)
			}
			// Either side may be the first to give up; the receiver names the sender's port by its address.
			lines := append(said(a, marks[0]), said(b, marks[1])...)
			named := slices.ContainsFunc(lines, func(l string) bool { return strings.Contains(l, c.names) })
			why := slices.ContainsFunc(lines, func(l string) bool {
				return strings.Contains(l, "; likely, in this order: ") || strings.Contains(l, "does not answer")
			})
			if !named || !why {
				t.Errorf("no line says why, or none names %s: %q", c.names, lines)
			}
			must(t, a.n.CloseSend(x.send), "closeSend")
			must(t, b.n.CloseRecv(x.recv), "closeRecv")
			for _, p := range []*peer{a, b} {
				w.atRest(p, simverbs.Objects{}, c.name)
			}
			next := func(want string) {
				t.Helper()
				settle(t, fmt.Sprintf("the next comm is over %q", want), func() (string, bool) {
					mark := marked(a)
					n := join(a, b, 1<<20)
					n.move(traffic{size: 100_000, count: 10, window: 4})
					members := over(mark)
					must(t, a.n.CloseSend(n.send), "closeSend")
					must(t, b.n.CloseRecv(n.recv), "closeRecv")
					return fmt.Sprintf("%q: %q", members, said(a, mark)), members == want
				})
			}
			next(c.left)
			w.command(a, c.mend...)
			next("sim0sim1")
		})
	}
}
