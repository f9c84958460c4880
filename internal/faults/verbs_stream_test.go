package faults

import (
	"fmt"
	"strings"
	"testing"

	"weft/internal/host"
	"weft/internal/simverbs"
)

// TestFailsMidStream has a call or a request fail while hundreds of messages are under
// way both ways: each direction's comm that meets it ends with an error on both sides,
// the other one goes on, and what had arrived is right.
func TestFailsMidStream(t *testing.T) {
	t.Parallel()
	for _, fault := range []string{"fail post_send 200 EIO", "fail post_recv 10 ENOMEM", "fail poll_cq 1000", "error simA/simA 200 RETRY_EXC_ERR", "error simA/simA 200 LOC_PROT_ERR placed"} {
		t.Run(strings.NewReplacer(" ", "_", "/", "_").Replace(fault), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, simverbs.Device{}, simverbs.Device{})
			env := []string{"WEFT_TIMEOUT=4", "WEFT_LAZY=off", "NCCL_IB_QPS_PER_CONNECTION=2", "NCCL_IB_SPLIT_DATA_ON_QPS=1", "WEFT_STRIPE_MIN=4096"}
			a, b := w.start("simA", newest, env...), w.start("simB", newest, env...)
			there, back := join(a, b, 1<<20), join(b, a, 1<<20)
			f := traffic{size: 10_000, count: 400, window: 8, limit: 2 * sweepLimit}
			mark := marked(a)
			w.command(a, fault)
			loops := []*host.Pending{there.receiving(f), there.sending(f), back.receiving(f), back.sending(f)}
			var errs [4]error
			for i, l := range loops {
				r, err := l.Wait()
				if errs[i] = err; stuck(err) {
					t.Fatalf("%s: %v: %v", fault, []string{"receiver there", "sender there", "receiver back", "sender back"}[i], err)
				}
				if n := r.Int("bad"); n != 0 {
					t.Errorf("%d bytes are wrong", n)
				}
			}
			for i := 0; i < 4; i += 2 {
				if (errs[i] == nil) != (errs[i+1] == nil) && !strings.HasSuffix(fault, "placed") {
					t.Errorf("only one side knows: %v, %v", errs[i], errs[i+1])
				}
			}
			if failed := len(said(a, mark)); errs == [4]error{} || failed == 0 {
				t.Errorf("nothing failed: %q", said(a, mark))
			}
			must(t, a.n.CloseSend(there.send), "closeSend")
			must(t, a.n.CloseRecv(back.recv), "closeRecv")
			must(t, b.n.CloseSend(back.send), "closeSend")
			must(t, b.n.CloseRecv(there.recv), "closeRecv")
			for _, p := range []*peer{a, b} {
				w.atRest(p, simverbs.Objects{}, fault)
			}
			mark = marked(a)
			join(a, b, 1<<20).move(f)
			if byRDMA(a, mark) != 1 {
				t.Errorf("the next comm is not by RDMA: %q", said(a, mark))
			}
		})
	}
}

// TestEventsCannotBeRead: what the device says of itself is lost, a line says so, and connections go on.
func TestEventsCannotBeRead(t *testing.T) {
	w := newWorld(t, simverbs.Device{}, simverbs.Device{})
	a, b := w.start("simA", newest), w.start("simB", newest)
	c := join(a, b, 1<<20)
	mark := marked(a)
	w.command(a, "fail get_async_event 1 EIO", "event simA/simA CLIENT_REREGISTER")
	settle(t, "nothing says that events are lost", func() (string, bool) {
		text := strings.Join(said(a, mark), "\n")
		return text, strings.Contains(text, "ibv_get_async_event on simA") && strings.Contains(text, "(EIO); ")
	})
	f := traffic{size: 10_000, count: 100, window: 8}
	c.move(f)
	join(b, a, 1<<20).move(f)
	if n := byRDMA(a, 0); n != 2 {
		t.Errorf("%d of 2 comms by RDMA: %s", n, fmt.Sprint(said(a, mark)))
	}
}
