package model_test

import (
	"strings"
	"testing"
	"time"
)

// What was over before the last while goes; what was under way in it stays. The while ends when all were seen last.
func TestKeepLast(t *testing.T) {
	from, to, a, b := both()
	for i := range uint64(10) {
		sent, posted := 1000+100*i, 990+100*i
		m := a.Message(sent, 1, true, i+1, 10, 5)
		a.MessageEnd(sent+50, m, i+1, 10, 0)
		r := b.Message(posted, 2, false, i+1, 10, 5)
		b.MessageEnd(sent+60, r, i+1, 10, 0)
	}
	a.Said(5000, 1, "the sender is seen later")
	m := build(t, from, to)
	m.KeepLast(300 * time.Nanosecond) // to 1960
	c := m.Connections[0]
	if len(c.Pairs) != 4 || len(c.Sender.Messages) != 3 || len(c.Receiver.Messages) != 4 || c.Receiver.Messages[0].To != 1660 {
		t.Errorf("%d pairs, %d sends, %d receives", len(c.Pairs), len(c.Sender.Messages), len(c.Receiver.Messages))
	}
}

// Texts are put together from their parts, the last of which may stand first.
func TestSaid(t *testing.T) {
	from, to, a, b := both()
	long := strings.Repeat("so it goes ", 20)
	a.Said(300, 2, "second")
	a.Said(200, 1, long)
	b.Said(100, 1, "not\x1bplain")
	m := build(t, from, to)
	if s := m.Processes[0].Said; len(s) != 2 || s[0].Text != long || s[0].Time != 200 || s[1].Text != "second" {
		t.Errorf("%+v", s)
	}
	if s := m.Processes[1].Said; len(s) != 1 || s[0].Text != "not?plain" {
		t.Errorf("%+v", s)
	}
}
