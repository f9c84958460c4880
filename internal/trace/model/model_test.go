package model_test

import (
	"testing"

	"weft/internal/trace/model"
	"weft/internal/trace/rectest"
	"weft/transport/record/format"
)

func build(t *testing.T, files ...*rectest.File) *model.Trace {
	t.Helper()
	return model.New(rectest.Read(t, files...))
}

func of(p *model.Process, typ uint8) []*model.Event {
	var all []*model.Event
	for _, e := range p.Events {
		if e.Type == typ {
			all = append(all, e)
		}
	}
	return all
}

func noted(t *testing.T, m *model.Trace, want ...string) {
	t.Helper()
	if len(m.Notes) != len(want) {
		t.Errorf("%d notes, want %d: %q", len(m.Notes), len(want), m.Notes)
		return
	}
	for i, w := range want {
		if m.Notes[i] != w {
			t.Errorf("note %q, want %q", m.Notes[i], w)
		}
	}
}

var job = rectest.Job{Ranks: 4, PerMachine: 2, Iterations: 3, Version: 6, Skew: 90_000_000, Late: map[int]uint64{1: 40_000}}

func TestJob(t *testing.T) {
	m := build(t, job.Files()...)
	noted(t, m)
	if len(m.Processes) != 4 || len(m.Machines) != 2 || len(m.Communicators) != 1 || len(m.Connections) != 4 {
		t.Fatalf("%d processes on %d machines, %d communicators, %d connections", len(m.Processes), len(m.Machines), len(m.Communicators), len(m.Connections))
	}
	c := m.Communicators[0]
	if c.ID != 0xc0ffee || c.Name != "world" || c.Ranks != 4 || c.Nodes != 2 || len(c.Comms) != 4 || c.Comms[3].Rank != 3 {
		t.Errorf("communicator %+v", c)
	}
	// Messages between the machines bound the skew from both sides by one flight.
	if o := m.Machines[1].Clock; o.Basis != "messages" || o.Bound != 15_000 || o.Add != -90_000_000 {
		t.Errorf("second machine's clock %+v", o)
	}
	for _, x := range m.Connections {
		if len(x.Pairs) != 3 || x.Unmatched != 0 {
			t.Errorf("connection %#x: %d pairs, %d unmatched", x.Sender.Number, len(x.Pairs), x.Unmatched)
		}
	}
	p := m.Processes[0]
	coll := of(p, format.Coll)[0]
	if coll.Up.Type != format.CollAPI || coll.Up.Up.Type != format.GroupAPI || len(coll.Down) != 3 || coll.In.Rank != 0 {
		t.Errorf("collective %+v", coll)
	}
	// Rank 1 came last, at 1,040,100; 20 us later the message left, which took 15; then the kernel.
	if coll.From != 1_002_000 || coll.To != 1_040_100+35_000+2000+1500 || coll.Open || coll.Launch {
		t.Errorf("the collective takes %d to %d", coll.From, coll.To)
	}
	kernel := of(p, format.KernelCh)[0]
	if !kernel.OnGPU || kernel.From != 1_010_000+1500 || len(p.GPU) != 1 || p.GPU[0].Slack != 8000+1500 || !p.GPU[0].Bounded {
		t.Errorf("kernel from %d, GPU %+v", kernel.From, p.GPU)
	}
}
