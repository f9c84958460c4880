package event

import (
	"errors"
	"testing"

	"weft/internal/fakeibv"
	"weft/internal/report"
	"weft/transport/verbs/card"
	"weft/transport/verbs/gid"
	"weft/transport/verbs/ibv"
	"weft/transport/verbs/mr"
	"weft/transport/verbs/port"
	"weft/transport/verbs/qp"
)

// hear opens the library's first card and hears it, once change is done with its functions.
func hear(t *testing.T, f *fakeibv.Lib, env map[string]string, change func(*ibv.Calls)) (*Source, *card.Card, *port.Device, *report.Recorder) {
	t.Helper()
	host := fakeibv.Host(t, fakeibv.Eth(1, true, "10.0.0.1/24"))
	c, log := f.Open(host, env)
	rules, _ := gid.RulesOf(c.Lib.Knobs)
	links, err := host.Links()
	if err != nil {
		t.Fatal(err)
	}
	d, why := port.Find(&port.Choice{Rules: &rules, Links: links}, c, mr.DomainsOf(c), 1)
	if d == nil {
		t.Fatal(why, log.Lines())
	}
	if change != nil {
		change(c.Lib.Calls)
	}
	return Of(c, []*port.Device{d}), c, d, log
}

// bench is a card that is heard, with a protection domain and a completion queue.
type bench struct {
	t   *testing.T
	f   *fakeibv.Lib
	s   *Source
	c   *card.Card
	log *report.Recorder
	d   *port.Device
	pd  *mr.PD
	cq  *qp.CQ
}

func newBench(t *testing.T, f *fakeibv.Lib, env map[string]string) *bench {
	t.Helper()
	b := &bench{t: t, f: f}
	b.s, b.c, b.d, b.log = hear(t, f, env, nil)
	var err error
	if b.pd, err = b.d.AcquirePD(); err != nil {
		t.Fatal(err)
	}
	if b.cq, err = qp.NewCQ(b.pd, 512); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bench) qp(cookie uint64) (*qp.QP, error) {
	return qp.New(b.d, b.pd, qp.Config{SendCQ: b.cq, RecvCQ: b.cq, SendDepth: 256, RecvDepth: 256, Cookie: cookie})
}

func (b *bench) end() {
	b.t.Helper()
	if err := errors.Join(b.cq.Close(), b.pd.Release()); err != nil {
		b.t.Error(err)
	}
	b.s.Close()
	if left := b.f.Left(); left != nil {
		b.t.Errorf("left: %v", left)
	}
}
