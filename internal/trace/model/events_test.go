package model_test

import (
	"testing"

	"weft/internal/trace/model"
	"weft/internal/trace/rectest"
	"weft/transport/record/format"
)

const boot = 9

func process(pid uint64) (*rectest.File, *rectest.Thread) {
	f := rectest.New(4, pid, "node", boot, 0, 0)
	return f, f.Thread(uint32(pid), "t")
}

// With PXN a proxy works for another process of its machine.
func TestParentInAnotherProcess(t *testing.T) {
	owner, a := process(1)
	helper, b := process(2)
	coll := a.Start(format.Coll, 100, format.Record{Rank: 0})
	a.Stop(coll, 110)
	op := b.Start(format.ProxyOp, 120, format.Record{Rank: 1, Parent: coll, A: 1 | 3<<32 | 1<<40})
	b.Stop(op, 500)
	stranger := b.Start(format.ProxyOp, 130, format.Record{Rank: 1, Parent: coll, A: 77})
	b.Stop(stranger, 600)
	own := b.Start(format.ProxyOp, 140, format.Record{Rank: 1, Parent: coll, A: 2})
	b.Stop(own, 700)
	m := build(t, owner, helper)
	e := of(m.Processes[0], format.Coll)[0]
	if len(e.Down) != 1 || e.Down[0].Process != m.Processes[1] || e.To != 500 || e.Launch || e.Down[0].Channel() != 3 || !e.Down[0].Sends() {
		t.Errorf("the collective has %d children and ends at %d", len(e.Down), e.To)
	}
	noted(t, m, "2 events have a parent that was not recorded, or was overwritten")
}

// Two containers of a machine may have processes of one number.
func TestTwoProcessesOfOneNumber(t *testing.T) {
	one, a := process(1)
	two, b := process(1)
	helper, c := process(2)
	coll := a.Start(format.Coll, 100, format.Record{})
	if coll != b.Start(format.Coll, 100, format.Record{}) {
		t.Fatal("the IDs differ")
	}
	c.Start(format.ProxyOp, 120, format.Record{Parent: coll, A: 1})
	m := build(t, one, two, helper)
	if op := of(m.Processes[2], format.ProxyOp)[0]; op.Up != nil {
		t.Error("one of two was taken")
	}
}

func TestEnds(t *testing.T) {
	f, a := process(1)
	childless := a.Start(format.Coll, 100, format.Record{A: 1})
	a.Stop(childless, 110)
	working := a.Start(format.P2p, 200, format.Record{A: 2})
	a.Stop(working, 210)
	op := a.Start(format.ProxyOp, 220, format.Record{Parent: working, A: 1})
	step := a.Start(format.ProxyStep, 230, format.Record{Parent: op})
	a.Stop(step, 240)
	call := a.Start(format.CollAPI, 300, format.Record{Flags: 1})
	a.Stop(call, 305)
	captured := a.Start(format.Coll, 301, format.Record{Parent: call, A: 3})
	a.Stop(captured, 304)
	for i := range uint64(2) { // the graph runs twice
		replay := a.Start(format.ProxyOp, 400+100*i, format.Record{Parent: captured, A: 1})
		a.Stop(replay, 450+100*i)
		a.Stop(replay, 460+100*i)
	}
	a.Start(40, 600, format.Record{Parent: working})
	m := build(t, f)
	colls := of(m.Processes[0], format.Coll)
	if e := colls[0]; !e.Launch || e.From != 100 || e.To != 110 || e.Open {
		t.Errorf("without children: %+v", e)
	}
	if e := of(m.Processes[0], format.P2p)[0]; e.Launch || !e.Open || e.To != 600 || e.Down[0].Down[0].To != 240 {
		t.Errorf("with an open child: launch %t, open %t, to %d", e.Launch, e.Open, e.To)
	}
	if e := colls[1]; !e.Launch || !e.Captured || e.To != 304 || !e.Down[1].Captured || e.Down[1].To != 550 {
		t.Errorf("captured: %+v", e)
	}
	noted(t, m)
}

// What a file claims of parents cannot become a circle, and a parent is older.
func TestParentsThatCannotBe(t *testing.T) {
	f, a := process(1)
	first := a.Start(format.Coll, 100, format.Record{})
	a.Start(format.Coll, 110, format.Record{Parent: first})
	a.Start(format.GroupAPI, 120, format.Record{Parent: first})
	late := a.Start(format.CollAPI, 130, format.Record{})
	a.Start(format.Coll, 125, format.Record{Parent: late})
	a.Stop(12345, 140)
	m := build(t, f)
	for _, e := range m.Processes[0].Events {
		if e.Up != nil {
			t.Errorf("%+v has a parent", e.Record)
		}
	}
	noted(t, m, "node:1: 1 stops and states of events whose start was overwritten", "3 events have a parent that was not recorded, or was overwritten")
}

// Hosts up to NCCL 2.25 do not say which communicator it is.
func TestCommunicatorsWithoutIdentity(t *testing.T) {
	old := job
	old.Version = 3
	m := build(t, old.Files()...)
	if len(m.Communicators) != 4 {
		t.Fatalf("%d communicators", len(m.Communicators))
	}
	c := m.Communicators[2]
	if c.ID != 0 || c.Ranks != 0 || c.Comms[0].Rank != 2 || c.Label() != "without identity" {
		t.Errorf("%+v, rank %d", c, c.Comms[0].Rank)
	}
}

// A number is given again, and the record of one may be gone.
func TestNumbersOfCommunicators(t *testing.T) {
	f, a := process(1)
	lost := a.Start(format.Coll, 50, format.Record{Comm: 2, Rank: 6})
	a.Stop(lost, 51)
	for i := range uint64(2) {
		a.Put(format.Record{Kind: format.Comm, Comm: 2, Time: 100 + 100*i, Rank: int32(i), A: 0xa0 + i, B: 8 << 32, C: 1 | 6<<32})
		a.Start(format.Coll, 150+100*i, format.Record{Comm: 2, Rank: int32(i)})
		a.Put(format.Record{Kind: format.CommEnd, Comm: 2, Time: 190 + 100*i})
	}
	m := build(t, f)
	colls := of(m.Processes[0], format.Coll)
	if c := colls[0].In; c.Known || c.Rank != 6 || c.Of.ID != 0 {
		t.Errorf("the first is of %+v", c)
	}
	for i, e := range colls[1:] {
		if e.In.Of.ID != uint64(0xa0+i) || e.In.To != uint64(190+100*i) {
			t.Errorf("number %d is of %+v", i, e.In)
		}
	}
	if len(m.Communicators) != 3 {
		t.Errorf("%d communicators", len(m.Communicators))
	}
}

// Nothing bounds the clock of a GPU whose kernels have no collective; one that
// never ended has the host's times.
func TestKernels(t *testing.T) {
	f, a := process(1)
	for i := range uint64(2) {
		k := a.Start(format.KernelCh, 1000+i, format.Record{A: 4, B: 50_000 + 10*i})
		a.State(k, 1100, 22, 50_020+10*i)
		a.Stop(k, 1100)
	}
	a.Start(format.KernelCh, 1200, format.Record{B: 50_100})
	none := a.Start(format.KernelCh, 1300, format.Record{})
	a.Stop(none, 1310)
	m := build(t, f)
	p := m.Processes[0]
	want := []model.GPU{{Add: 1001 - 50_010}}
	if len(p.GPU) != 1 || p.GPU[0] != want[0] {
		t.Errorf("GPUs %+v, want %+v", p.GPU, want)
	}
	k := of(p, format.KernelCh)
	if !k[1].OnGPU || k[1].From != 1001 || k[1].To != 1021 || k[1].Channel() != 4 {
		t.Errorf("kernel %+v", k[1])
	}
	if k[2].OnGPU || !k[2].Open || k[2].From != 1200 || k[3].OnGPU || k[3].To != 1310 {
		t.Errorf("kernels without times of the GPU: %+v, %+v", k[2], k[3])
	}
}
