package faults

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"weft/internal/host"
	"weft/internal/simverbs"
)

// TestEveryVerbsCallFails makes every call of libibverbs fail that a connection's life
// needs, at every place, on either side. The host's call ends in an error, or the
// comm goes over TCP or does without; a line names the call, the device, what the
// errno is and what helps; nothing hangs, nothing is left, and the next connection runs over RDMA.
// So it is where another connection stays and each next one may have the queue pairs of the last.
func TestEveryVerbsCallFails(t *testing.T) {
	t.Parallel()
	for _, side := range []string{"simA", "simB"} {
		for _, c := range []struct {
			errno, split string
			fused        bool   // devices of two ports
			lazy         string // whether these and further lanes come later
			kept         bool   // queue pairs of the connection before
		}{{"ENOMEM", "0", false, "", false}, {"EIO", "1", false, "off", false}, {"EIO", "0", true, "off", false}, {"EIO", "0", true, "background", false},
			{"EIO", "1", false, "off", true}, {"ENOMEM", "0", true, "off", true}} {
			t.Run(fmt.Sprintf("%s_%s_fused_%v_%s_kept_%v", side, c.errno, c.fused, c.lazy, c.kept), func(t *testing.T) {
				t.Parallel()
				ece := simverbs.Device{ECEVendor: 0x15b3, ECEOptions: 1}
				w := newWorld(t, ece, ece)
				if c.fused {
					w.Devices = append(w.Devices, simverbs.Device{Name: "simA2", Node: "simA", GIDs: []string{"10.9.2.1/24"}}, simverbs.Device{Name: "simB2", Node: "simB", GIDs: []string{"10.9.2.2/24"}})
				}
				env := []string{"WEFT_TIMEOUT=4", "WEFT_FLUSH=always", "NCCL_IB_QPS_PER_CONNECTION=2", "NCCL_IB_SPLIT_DATA_ON_QPS=" + c.split, "WEFT_LAZY=" + c.lazy}
				if c.kept {
					env = append(env, "WEFT_POOL=2")
				}
				b := w.bond(env...)
				b.grows = c.lazy == "background"
				s := &sweep{bond: b, t: t, victim: b.tx, side: side, errno: c.errno, cards: 1, floor: map[*end]simverbs.Objects{}}
				if side == "simB" {
					s.victim = b.rx
				}
				if c.fused {
					s.cards = 2
				}
				for _, p := range []*peer{b.tx.peer, b.rx.peer} {
					if c.fused {
						_, err := p.fuse(0, 1)
						must(t, err, "makeVDevice")
					}
				}
				if c.kept {
					s.keep()
				} else {
					s.healthy("at first")
				}
				for _, call := range sweptCalls {
					s.all(call)
				}
			})
		}
	}
}

// sweptCall is a function of libibverbs.
type sweptCall struct {
	name     string
	optional bool             // a connection's life may do without it
	polled   int              // 1: called so often that fewer and fewer places are looked at
	ends     bool             // it ends something: a failure must be said though nothing else shows it
	leaves   simverbs.Objects // what a call that fails cannot but leave
}

// told is the errno that a line must name: a poll tells none.
func (s *sweep) told(call sweptCall) string {
	if call.name == "poll_cq" {
		return "(EIO)"
	}
	return "(" + s.errno + ")"
}

// sweptCalls has what leaves something last: a domain that still holds memory cannot go.
var sweptCalls = []sweptCall{
	{name: "create_cq"}, {name: "create_qp"}, {name: "modify_qp"}, {name: "query_qp", optional: true},
	{name: "query_ece", optional: true}, {name: "set_ece", optional: true},
	{name: "reg_mr", optional: true}, {name: "reg_mr_iova2"}, {name: "reg_dmabuf_mr"},
	{name: "post_send"}, {name: "post_recv", optional: true, polled: 1}, {name: "poll_cq", polled: 1},
	{name: "alloc_pd"}, {name: "dealloc_pd", ends: true},
	{name: "dereg_mr", ends: true, leaves: simverbs.Objects{MRs: 1}},
	{name: "destroy_cq", ends: true, leaves: simverbs.Objects{CQs: 1}},
	{name: "destroy_qp", ends: true, leaves: simverbs.Objects{CQs: 1, QPs: 1}},
}

// sweep is the calls of one process, failing with one errno.
type sweep struct {
	*bond
	t      *testing.T
	victim *end
	side   string
	errno  string
	cards  int                       // whose protection domains a life of its own ends
	left   simverbs.Objects          // what failing calls have left so far
	floor  map[*end]simverbs.Objects // what another connection and the pool have
}

const sweepLimit = 15 * time.Second

// all makes call fail at its first, second, ... place until there is none.
func (s *sweep) all(call sweptCall) {
	s.t.Helper()
	places := 0
	for n := 1; s.once(call, n); n += 1 + n*call.polled/2 {
		places++
	}
	if places == 0 && !call.optional && len(s.floor) == 0 {
		s.t.Errorf("%s is never called", call.name)
	}
	s.t.Logf("%s: failed at %d places", call.name, places)
}

// once makes the n-th call fail during one life; false: there is no n-th.
func (s *sweep) once(call sweptCall, n int) bool {
	s.t.Helper()
	w, what := s.w, fmt.Sprintf("%s, call %d, fails with %s on %s", call.name, n, s.errno, s.side)
	before, marks := w.count(s.victim.peer), map[*end]int{s.tx: marked(s.tx.peer), s.rx: marked(s.rx.peer)}
	w.command(s.victim.peer, fmt.Sprintf("fail %s %d %s", call.name, n, s.errno))
	errs := s.life(sweepLimit)
	for _, e := range errs {
		if stuck(e) {
			s.t.Fatalf("%s: %v", what, e)
		}
	}
	s.rest(what, call.leaves)
	failed := func() bool { return w.count(s.victim.peer).Failed > before.Failed }
	if call.ends {
		s.ended(call, n, what, failed)
	}
	if !failed() {
		w.command(s.victim.peer, fmt.Sprintf("fail %s 1 %s 0", call.name, s.errno))
	}
	if !failed() { // nor before it was told not to
		for _, e := range errs {
			s.t.Errorf("%s: it is not called that often, yet: %v", what, e)
		}
		return false
	}
	s.left.MRs, s.left.CQs, s.left.QPs = s.left.MRs+call.leaves.MRs, s.left.CQs+call.leaves.CQs, s.left.QPs+call.leaves.QPs
	s.judge(what, call, errs, marks)
	s.healthy(what)
	return true
}

// ended waits until a call that ends something has failed, or no other can come: that
// may be a little later than what the count allows.
func (s *sweep) ended(call sweptCall, n int, what string, failed func() bool) {
	s.t.Helper()
	switch alone := len(s.floor) == 0; {
	case alone && call.leaves != simverbs.Objects{}: // what is left shows whether all were called
		settle(s.t, fmt.Sprintf("%s: it does not fail, and more than %+v is left", what, s.left), func() (string, bool) {
			o := s.w.count(s.victim.peer)
			return fmt.Sprintf("%+v now", o), failed() || o.MRs <= s.left.MRs && o.CQs <= s.left.CQs && o.QPs <= s.left.QPs
		})
	case alone && n <= s.cards: // each card's domain goes, which no count shows
		settle(s.t, what, func() (string, bool) { return "it is not called", failed() })
	default: // one that comes later is not looked at
		for range 50 {
			if failed() {
				break
			}
			time.Sleep(5 * time.Millisecond)
		}
	}
}

// rest waits until both sides have no more of the device than they must.
func (s *sweep) rest(what string, more simverbs.Objects) {
	s.t.Helper()
	for _, e := range []*end{s.tx, s.rx} {
		allowed := s.floor[e]
		if e == s.victim {
			allowed.MRs, allowed.CQs, allowed.QPs = allowed.MRs+s.left.MRs+more.MRs, allowed.CQs+s.left.CQs+more.CQs, allowed.QPs+s.left.QPs+more.QPs
		}
		if s.w.atRest(e.peer, allowed, what); s.t.Failed() {
			s.t.FailNow() // each further look would wait for as long
		}
	}
}

// judge requires an explanation of whatever did not go as if nothing had happened.
func (s *sweep) judge(what string, call sweptCall, errs []step, marks map[*end]int) {
	s.t.Helper()
	for _, e := range errs {
		if c := host.Code(e); c != host.SystemError && c != host.RemoteError {
			s.t.Errorf("%s: %v", what, e)
		}
	}
	same := len(errs) == 0 && !s.without() && byRDMA(s.tx.peer, marks[s.tx]) == 1 && byRDMA(s.rx.peer, marks[s.rx]) == 1
	if same && !call.ends {
		return
	}
	s.said(what, errs, marks, func(l string) bool {
		at := strings.Index(l, "ibv_"+strings.TrimSuffix(call.name, "_iova2"))
		return at >= 0 && strings.Contains(l, s.side) && strings.Contains(l[at:], s.told(call)) && strings.Contains(l[at:], "; ")
	})
}

// said waits for a line of the victim that explains, which what ends in the background may say a little later.
func (s *sweep) said(what string, errs []step, marks map[*end]int, explains func(line string) bool) {
	s.t.Helper()
	var lines []string
	settle(s.t, fmt.Sprintf("%s: nothing says so: %v", what, errs), func() (string, bool) {
		lines = said(s.victim.peer, marks[s.victim])
		return "but:\n" + strings.Join(lines, "\n"), slices.ContainsFunc(lines, explains)
	})
	for _, l := range lines {
		if strings.Contains(l, "\n") {
			s.t.Errorf("%s: a line is not one line: %q", what, l)
		}
	}
}

// healthy requires that a life over RDMA leaves nothing.
func (s *sweep) healthy(what string) {
	s.t.Helper()
	marks := [2]int{marked(s.tx.peer), marked(s.rx.peer)}
	for _, e := range s.life(sweepLimit) {
		s.t.Fatalf("after that: %s: %v", what, e)
	}
	for i, p := range []*peer{s.tx.peer, s.rx.peer} {
		if byRDMA(p, marks[i]) != 1 {
			s.t.Fatalf("after that the next comm is not by RDMA: %s:\n%s", what, strings.Join(said(p, marks[i]), "\n"))
		}
	}
	s.rest(what, simverbs.Objects{})
}
