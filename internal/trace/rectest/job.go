package rectest

import (
	"fmt"

	"weft/transport/record/format"
)

// Job is one of ranks that all-reduce around a ring, each a process.
type Job struct {
	Ranks, PerMachine, Iterations int
	Version                       uint64         // of the profiler table
	Late                          map[int]uint64 // ranks that come to collectives so much later, ns
	LateIn                        uint64         // of ten collectives to so many; 0: to every one
	Slow                          map[int]uint64 // ranks whose sends take so much longer
	Skew                          uint64         // each machine's clock is so much ahead of that of the one before
}

// Times of the job, ns.
const (
	jobStart  = 1_000_000
	jobPeriod = 400_000
	jobFlight = 15_000 // of a message
	jobGPU    = 7_000_000_000
	jobComm   = 0xc0ffee
	JobBytes  = 1 << 20
)

// Files are those of its processes.
func (j Job) Files() []*File {
	var files []*File
	for r := range j.Ranks {
		files = append(files, j.rank(r))
	}
	return files
}

// rank writes what one records. Times are the first machine's, made its own by t.
type rank struct {
	j          Job
	r          int
	f          *File
	api, proxy *Thread
	skew       uint64
}

func (k *rank) t(at uint64) uint64 { return at + k.skew }

func (j Job) rank(r int) *File {
	machine := r / j.PerMachine
	k := &rank{j: j, r: r, skew: uint64(machine) * j.Skew}
	k.f = New(8, uint64(100+r), fmt.Sprintf("node%d", machine), byte(machine+1), k.skew, 5_000_000_000)
	k.api, k.proxy = k.f.Thread(uint32(1000+r), "python"), k.f.Thread(uint32(2000+r), "NCCL Progress")
	comm := format.Record{Kind: format.Comm, Comm: 1, Time: k.t(1000), Rank: int32(r), C: uint64(j.machines()) | j.Version<<32}
	if j.Version >= 4 {
		comm.A, comm.B = jobComm, k.f.Name("world")|uint64(j.Ranks)<<32
	} else {
		comm.Rank = 0
	}
	k.api.Put(comm)
	next, before := (r+1)%j.Ranks, (r+j.Ranks-1)%j.Ranks
	k.proxy.Link(k.t(2000), 0x10, true, 2, uint64(0x1000+r), "mlx5_0", fmt.Sprintf("node%d", next/j.PerMachine), comm.A)
	k.proxy.Link(k.t(2000), 0x20, false, 2, uint64(0x1000+before), "mlx5_0", fmt.Sprintf("node%d", before/j.PerMachine), comm.A)
	for i := range j.Iterations {
		k.iteration(uint64(i))
	}
	return k.f
}

func (j Job) machines() int { return (j.Ranks + j.PerMachine - 1) / j.PerMachine }

// enter is when a rank comes to a collective, all when the last has.
func (j Job) enter(i uint64, r int) uint64 {
	at := jobStart + i*jobPeriod + uint64(r)*100
	if j.LateIn == 0 || i%10 < j.LateIn {
		at += j.Late[r]
	}
	return at
}

func (j Job) all(i uint64) uint64 {
	last := uint64(0)
	for r := range j.Ranks {
		last = max(last, j.enter(i, r))
	}
	return last
}

func (k *rank) iteration(i uint64) {
	j, me := k.j, int32(k.r)
	e := k.t(j.enter(i, k.r))
	group := k.api.Start(format.GroupAPI, e, format.Record{Comm: 1, Rank: me, A: 1})
	call := k.api.Start(format.CollAPI, e+1000, format.Record{
		Comm: 1, Rank: me, Parent: group, A: JobBytes / 4, B: 0xbeef,
		More: [7]uint64{k.f.Name("AllReduce") | k.f.Name("ncclFloat32")<<32},
	})
	coll := k.api.Start(format.Coll, e+2000, format.Record{
		Comm: 1, Rank: me, Parent: call, A: i, B: JobBytes / 4,
		More: [7]uint64{k.f.Name("AllReduce") | k.f.Name("ncclFloat32")<<32, k.f.Name("RING") | k.f.Name("SIMPLE")<<32, 1<<32 | 16<<40},
	})
	k.api.Stop(coll, e+2500)
	k.api.Stop(call, e+2800)
	launch := k.api.Start(format.KernelLaunch, e+3000, format.Record{Comm: 1, Rank: me, Parent: group, B: 0xbeef})
	k.api.Stop(launch, e+5000)
	k.api.Stop(group, e+7000)

	began := k.t(j.all(i)) + 20_000 // everybody's data is there
	sent := began + jobFlight + j.Slow[k.r]
	came := began + jobFlight + j.Slow[(k.r+j.Ranks-1)%j.Ranks]
	k.send(i, coll, e, began, sent)
	k.receive(i, coll, e, came)
	k.kernel(coll, e+10_000, max(sent, came)+2000)
}

func (k *rank) send(i, coll, e, began, sent uint64) {
	next := uint64((k.r + 1) % k.j.Ranks)
	op := k.proxy.Start(format.ProxyOp, e+11_000, format.Record{Comm: 1, Rank: int32(k.r), Parent: coll, A: uint64(100+k.r) | 1<<40, B: next | 1<<32, C: 131072})
	step := k.proxy.Start(format.ProxyStep, e+11_500, format.Record{Comm: 1, Rank: int32(k.r), Parent: op})
	k.proxy.State(step, e+11_500, 8, 0)
	k.proxy.State(step, began-5000, 20, JobBytes)
	k.proxy.State(step, began, 9, JobBytes)
	m := k.proxy.Message(began, 0x10, true, i+1, JobBytes, 5)
	qp := k.proxy.Start(format.NetPlugin, began+100, format.Record{
		Comm: 1, Rank: int32(k.r), Parent: step, Flags: format.NetIB, A: i, B: JobBytes, C: 1<<16 | uint64(42+k.r)<<32, More: [7]uint64{0x10, m},
	})
	k.proxy.Stop(qp, sent-100)
	k.proxy.MessageEnd(sent, m, i+1, JobBytes, 0)
	k.proxy.Stop(step, sent)
	k.proxy.Stop(op, sent+500)
}

func (k *rank) receive(i, coll, e, came uint64) {
	before := uint64((k.r + k.j.Ranks - 1) % k.j.Ranks)
	op := k.proxy.Start(format.ProxyOp, e+11_200, format.Record{Comm: 1, Rank: int32(k.r), Parent: coll, A: uint64(100 + k.r), B: before | 1<<32, C: 131072})
	step := k.proxy.Start(format.ProxyStep, e+12_000, format.Record{Comm: 1, Rank: int32(k.r), Parent: op})
	k.proxy.State(step, e+12_000, 10, 0)
	m := k.proxy.Message(e+12_000, 0x20, false, i+1, JobBytes, 5)
	k.proxy.MessageEnd(came, m, i+1, JobBytes, 0)
	k.proxy.State(step, came, 11, JobBytes)
	k.proxy.State(step, came+300, 12, JobBytes)
	k.proxy.Stop(step, came+900)
	k.proxy.Stop(op, came+1000)
}

// kernel is noticed 1.5 us late. The GPU's clock is ahead by seven seconds.
func (k *rank) kernel(coll, from, to uint64) {
	ch := k.proxy.Start(format.KernelCh, from+1500, format.Record{Comm: 1, Rank: int32(k.r), Parent: coll, B: from + jobGPU})
	k.proxy.State(ch, to+1500, 22, to+jobGPU)
	k.proxy.Stop(ch, to+1600)
}
