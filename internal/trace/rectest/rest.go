package rectest

import "weft/transport/record/format"

// Rest is a file with everything that a host of today does not do in a plain all-reduce.
func Rest() *File {
	f := New(4, 7, "node", 1, 0, 0)
	a, b := f.Thread(1, "main"), f.Thread(2, "progress")
	a.Put(format.Record{Kind: format.Comm, Comm: 1, Time: 10, Rank: 3, A: 0xabc, B: 4 << 32, C: 1 | 6<<32})
	a.Put(format.Record{Kind: format.Comm, Comm: 2, Time: 11, Rank: 2, A: 0xabc, B: 4 << 32, C: 1 | 6<<32})
	group := a.Start(format.Group, 20, format.Record{Comm: 1, Rank: 3})
	a.Stop(group, 30)
	call := a.Start(format.P2pAPI, 40, format.Record{Comm: 1, Rank: 3, A: 100, Flags: 1, C: 9, More: [7]uint64{f.Name("Send") | f.Name("ncclFloat16")<<32}})
	a.Stop(call, 60)
	p2p := a.Start(format.P2p, 45, format.Record{Comm: 1, Rank: 3, Parent: call, A: 100, B: 1, More: [7]uint64{f.Name("Send") | f.Name("ncclFloat16")<<32, 2}})
	a.Stop(p2p, 50)
	ctrl := b.Start(format.ProxyCtrl, 70, format.Record{})
	b.State(ctrl, 70, 15, 0)
	b.State(ctrl, 90, 77, 0)
	b.Stop(ctrl, 100)
	ce := a.Start(format.CeColl, 110, format.Record{Comm: 2, Rank: 2, A: 4, B: 64, Flags: 1, More: [7]uint64{f.Name("AllGather") | f.Name("nonsense")<<32, f.Name("copy"), 16 << 32, 6: 3}})
	a.Stop(ce, 111)
	batch := a.Start(format.CeBatch, 112, format.Record{Comm: 2, Parent: ce, A: 3, B: 4096, C: 1})
	a.Stop(batch, 120)
	sync := a.Start(format.CeSync, 115, format.Record{Comm: 2, Parent: ce, A: 1 | 4<<32})
	a.Stop(sync, 125)
	symmetric := a.Start(format.Coll, 126, format.Record{Comm: 2, Rank: 2, A: 5, B: 64, More: [7]uint64{f.Name("AllReduce") | f.Name("ncclFloat32")<<32, f.Name("SYM"), 1 << 48, 6: f.Name("LL")}})
	a.Stop(symmetric, 127)
	kernel := b.Start(format.KernelCh, 130, format.Record{Comm: 2, A: 1})
	phase := b.Start(format.KernelPhase, 131, format.Record{Comm: 2, Parent: kernel, A: 1 | 2<<8, C: f.Name("reduce")})
	b.Stop(phase, 135)
	b.Stop(kernel, 140)
	step := b.Start(format.ProxyStep, 150, format.Record{Comm: 2})
	b.Stop(step, 160)
	socket := b.Start(format.NetPlugin, 151, format.Record{Parent: step, Flags: format.NetSocket, A: 12 | 1<<32, B: 8})
	b.Stop(socket, 155)
	b.Start(40, 170, format.Record{}) // no bit of the mask
	orphan := b.Message(175, 0x77, false, 1, 8, 1)
	b.MessageEnd(180, orphan, 1, 8, 0)
	b.Skip()
	a.Start(format.CollAPI, 190, format.Record{Comm: 1}) // it stays open
	b.Stop(0, 200)
	return f
}
