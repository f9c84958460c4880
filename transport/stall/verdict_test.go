package stall

import (
	"os"
	"strings"
	"testing"
	"time"

	"weft/transport/fastpath"
	"weft/transport/wire"
)

func TestReplied(t *testing.T) {
	const group = 7 // that waits here
	for _, c := range []struct {
		name  string
		sends bool
		why   uint8
		ready bool
		m     wire.WaitReply
		kind  kind
		text  string
	}{
		{"not posted, and waits for nobody", true, wire.WaitReceive, false, wire.WaitReply{Groups: 6, Monitors: true}, last, "its NCCL has posted no receive; that process runs and waits for nobody"},
		{"not posted, and is busy", true, wire.WaitReceive, false, wire.WaitReply{Groups: 6, Monitors: true, Moves: true}, last, "other connections of it move"},
		{"not posted, and has no monitor", true, wire.WaitReceive, false, wire.WaitReply{Groups: 6}, unaware, "its NCCL has posted no receive; that process runs without WEFT_PROFILE=stall"},
		{"not posted, and waits", true, wire.WaitReceive, false, wire.WaitReply{Monitors: true, Why: wire.WaitSend, Millis: 4900, For: "n6:12"}, chained, "its NCCL has posted no receive; that process runs and waits itself for n6:12 to send, for 4.9s"},
		{"not posted, and waits for one that is stopped", true, wire.WaitReceive, false, wire.WaitReply{Monitors: true, Why: wire.WaitReceive, Millis: 4900, For: "n6:12", Root: wire.RootSilent, RootWho: "n6:12"}, chained, "waits itself for n6:12 to post a receive, for 4.9s; n6:12 does not reply, though its machine does"},
		{"not posted, at the end of a chain", true, wire.WaitReceive, false, wire.WaitReply{Monitors: true, Why: wire.WaitReceive, For: "n6:12", Root: wire.RootOutside, RootWho: "n5:1", RootAge: 4000}, chained, "; root cause: n5:1 runs and waits for nobody"},
		{"not posted, as was heard long ago", true, wire.WaitReceive, false, wire.WaitReply{Monitors: true, Why: wire.WaitPath, Millis: 61000, For: "n6:12", Root: wire.RootOutside, RootWho: "n5:1", RootAge: 6000}, chained, "waits itself for n6:12 to get what was sent, for 1m1s"},
		{"not posted, and waits for one whose machine is gone", true, wire.WaitReceive, false, wire.WaitReply{Monitors: true, Why: wire.WaitReceive, Millis: 4900, For: "n6:12", Root: wire.RootDown, RootWho: "n6:12"}, chained, "; n6:12 does not reply, and neither does its machine"},
		{"not posted, after a connection of it has failed", true, wire.WaitReceive, false, wire.WaitReply{Monitors: true, Root: wire.RootBroken, RootWho: "the connection from n6:12 to n5:1"}, last, "its NCCL has posted no receive; the connection from n6:12 to n5:1 has failed, as the logs"},
		{"not posted, and waits for one like that", true, wire.WaitReceive, false, wire.WaitReply{Monitors: true, Why: wire.WaitReceive, Millis: 4900, For: "n6:12", Root: wire.RootBroken, RootWho: "the connection from n7:9 to n6:12"}, chained, "; root cause: the connection from n7:9 to n6:12 has failed"},
		{"posted, and not heard of", true, wire.WaitReceive, false, wire.WaitReply{Groups: 7, Asks: true, Monitors: true}, undelivered, "its NCCL has posted the receive, and this host does not hear of it; check the path"},
		{"posted of another tag", true, wire.WaitReceive, true, wire.WaitReply{Groups: 7, Monitors: true}, last, "its NCCL has posted no receive"},
		{"not acknowledged, and asked for", true, wire.WaitPath, false, wire.WaitReply{Groups: 7, Asks: true, Monitors: true}, undelivered, "what was sent is not acknowledged"},
		{"not acknowledged, and not asked for", true, wire.WaitPath, false, wire.WaitReply{Groups: 7, Monitors: true}, last, "its NCCL has begun its part and does not go on with it; that process runs"},
		{"not acknowledged, by one that has no monitor", true, wire.WaitPath, false, wire.WaitReply{Groups: 7}, unaware, "its NCCL has begun its part and does not go on with it; that process runs without WEFT_PROFILE=stall"},
		{"not sent", false, wire.WaitSend, false, wire.WaitReply{Groups: 6, Monitors: true}, last, "its NCCL has sent nothing; that process runs and waits for nobody"},
		{"sent", false, wire.WaitSend, false, wire.WaitReply{Groups: 7, Monitors: true}, undelivered, "its NCCL has sent it, and it has not come"},
		{"to be sent, without the receive that is posted", false, wire.WaitSend, false, wire.WaitReply{Groups: 6, Asks: true, Lacks: true, Monitors: true}, undelivered, "has not come"},
		{"sent, and left half way", false, wire.WaitPath, false, wire.WaitReply{Groups: 7, Owes: true, Monitors: true}, last, "does not go on with it"},
		{"sent, by one that has no monitor", false, wire.WaitSend, false, wire.WaitReply{Groups: 7, Owes: true}, unaware, "its NCCL has begun its part"},
		{"a part has come, all was sent", false, wire.WaitPath, false, wire.WaitReply{Groups: 7, Monitors: true}, undelivered, "has not come"},
	} {
		now := time.Now()
		v := replied(c.sends, c.why, &fastpath.Look{Group: group, Ready: c.ready}, &c.m, now)
		if v.kind != c.kind {
			t.Errorf("%s: kind %d, want %d", c.name, v.kind, c.kind)
		}
		if got := v.text(c.sends, c.why); !strings.Contains(got, c.text) {
			t.Errorf("%s: %q, want %q in it", c.name, got, c.text)
		}
		if known := c.m.Root != wire.RootUnknown && c.m.RootAge < 5000 && c.kind == chained; known && now.Sub(v.known) != time.Duration(c.m.RootAge)*time.Millisecond {
			t.Errorf("%s: known for %v", c.name, now.Sub(v.known))
		}
	}
}

// docs/trace.md shows what is said of a process that waits for one that is stopped.
func TestPageOfLines(t *testing.T) {
	page, err := os.ReadFile("../../docs/trace.md")
	if err != nil {
		t.Fatal(err)
	}
	m := wire.WaitReply{Monitors: true, Why: wire.WaitSend, Millis: 4700, For: "node7:17315", Root: wire.RootSilent, RootWho: "node7:17314"}
	v := replied(false, wire.WaitSend, &fastpath.Look{Group: 1}, &m, time.Now())
	if text := v.text(false, wire.WaitSend); !strings.Contains(string(page), "has waited 5.2s, with 1 more connection of these devices: "+text+"\n") {
		t.Errorf("the page does not say %q", text)
	}
}
