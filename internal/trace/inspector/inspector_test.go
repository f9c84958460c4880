package inspector_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"weft/internal/golden"
	"weft/internal/trace/inspector"
	"weft/internal/trace/model"
	"weft/internal/trace/rectest"
	"weft/transport/record/format"
)

// epoch is the process's clock at time 0: 2026-01-01, ns.
const epoch = 1_767_225_600_000_000_000

// rank is a process that is rank 1 of 4 on 2 nodes.
type rank struct {
	f *rectest.File
	t *rectest.Thread
}

func newRank(host, comm string, id uint64) *rank {
	f := rectest.New(4, 77, host, 9, 0, epoch)
	r := &rank{f, f.Thread(1, "python")}
	r.t.Put(format.Record{Kind: format.Comm, Comm: 1, Time: 1000, Rank: 1, A: id, B: f.Name(comm) | 4<<32, C: 2 | 6<<32})
	return r
}

func (r *rank) coll(at uint64, fn, datatype string, number, count, channels uint64) uint64 {
	id := r.t.Start(format.Coll, at, format.Record{Comm: 1, Rank: 1, A: number, B: count, More: [7]uint64{
		r.f.Name(fn) | r.f.Name(datatype)<<32, r.f.Name("RING") | r.f.Name("LL")<<32, channels << 32,
	}})
	r.t.Stop(id, at+500)
	return id
}

func (r *rank) p2p(at uint64, fn string, peer, count, channels uint64) uint64 {
	id := r.t.Start(format.P2p, at, format.Record{Comm: 1, Rank: 1, A: count, B: peer, More: [7]uint64{
		r.f.Name(fn) | r.f.Name("ncclFloat32")<<32, channels,
	}})
	r.t.Stop(id, at+500)
	return id
}

// kernel is one that the GPU has timed, if gpu is not 0.
func (r *rank) kernel(of, channel, at, took, gpu uint64) {
	k := r.t.Start(format.KernelCh, at, format.Record{Comm: 1, Rank: 1, Parent: of, A: channel, B: min(gpu, 1) * 5_000_000_000})
	if gpu > 0 {
		r.t.State(k, at+took-100, 22, 5_000_000_000+gpu)
	}
	r.t.Stop(k, at+took)
}

func (r *rank) dump(t *testing.T, o inspector.Options) *inspector.Process {
	t.Helper()
	return inspector.New(model.New(rectest.Read(t, r.f)), o)[0]
}

func lines(t *testing.T, p *inspector.Process) string {
	t.Helper()
	var b bytes.Buffer
	if err := p.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// sample has a collective on two channels, one of which took longer, and a send on the second channel.
func sample() *rank {
	r := newRank("node7", `tp "0"`, 0x0123456789abcdef)
	c := r.coll(2_000_000, "AllReduce", "ncclFloat32", 41, 1<<20, 2)
	r.kernel(c, 0, 2_010_000, 900_000, 800_999)
	r.kernel(c, 1, 2_011_000, 950_000, 850_000)
	s := r.p2p(4_000_000, "Send", 3, 1<<18, 1)
	r.kernel(s, 1, 4_010_000, 300_000, 200_000)
	return r
}

func TestFormat(t *testing.T) {
	for _, c := range []struct {
		golden string
		o      inspector.Options
	}{
		{"plain", inspector.Options{MinBytes: inspector.MinBytes}},
		{"verbose", inspector.Options{MinBytes: inspector.MinBytes, Verbose: true}},
	} {
		p := sample().dump(t, c.o)
		if p.Name() != "node7-pid77.log" {
			t.Errorf("the file is called %s", p.Name())
		}
		text := lines(t, p)
		for _, l := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
			if !json.Valid([]byte(l)) {
				t.Errorf("%s: no JSON: %s", c.golden, l)
			}
		}
		golden.File(t, "testdata/"+c.golden+".jsonl", text)
	}
	var b bytes.Buffer
	p := sample().dump(t, inspector.Options{})
	if err := p.WriteMetrics(&b); err != nil {
		t.Fatal(err)
	}
	if p.MetricsName() != "nccl_inspector_metrics_node7-pid77.prom" {
		t.Errorf("the file of means is called %s", p.MetricsName())
	}
	golden.File(t, "testdata/means.prom", b.String())
}

// What the inspector writes, and by which clock.
func TestWhatIsWritten(t *testing.T) {
	anyTiming := inspector.Options{AnyTiming: true}
	for _, c := range []struct {
		what string
		o    inspector.Options
		make func(r *rank)
		want string // in the text; "": nothing is written
		left string
	}{
		{"a channel that the GPU has timed", inspector.Options{}, func(r *rank) {
			r.kernel(r.coll(2000, "Broadcast", "ncclInt8", 0, 9000, 1), 0, 3000, 9000, 7000)
		}, `"coll_exec_time_us":7,"coll_timing_source":"kernel_gpu","coll_algobw_gbs":1.285714,"coll_busbw_gbs":1.285714`, ""},
		{"no time of a GPU", inspector.Options{}, func(r *rank) {
			r.kernel(r.coll(2000, "Broadcast", "ncclInt8", 0, 9000, 1), 0, 3000, 9000, 0)
		}, "", "1 that no GPU has timed"},
		{"no time of a GPU, the host's is taken", anyTiming, func(r *rank) {
			r.kernel(r.coll(2000, "Broadcast", "ncclInt8", 0, 9000, 1), 0, 3000, 9000, 0)
		}, `"coll_exec_time_us":9,"coll_timing_source":"kernel_cpu"`, ""},
		{"less than a microsecond", anyTiming, func(r *rank) {
			r.kernel(r.coll(2000, "Broadcast", "ncclInt8", 0, 9000, 1), 0, 3000, 400, 0)
		}, `"coll_exec_time_us":0,"coll_timing_source":"collective_cpu","coll_algobw_gbs":0.000000,"coll_busbw_gbs":0.000000`, ""},
		{"of a collective the longest counts, by whichever clock", anyTiming, func(r *rank) {
			id := r.coll(2000, "Broadcast", "ncclInt8", 0, 9000, 2)
			r.kernel(id, 0, 3000, 5000, 4000)
			r.kernel(id, 1, 3000, 9000, 0)
		}, `"coll_exec_time_us":9,"coll_timing_source":"kernel_cpu"`, ""},
		{"of a send the GPU counts", anyTiming, func(r *rank) {
			id := r.p2p(2000, "Send", 0, 9000, 2)
			r.kernel(id, 0, 3000, 5000, 4000)
			r.kernel(id, 1, 3000, 9000, 0)
		}, `"p2p_exec_time_us":4,"p2p_timing_source":"kernel_gpu"`, ""},
		{"a channel is missing", anyTiming, func(r *rank) {
			r.kernel(r.coll(2000, "Reduce", "ncclInt8", 0, 9000, 2), 0, 3000, 9000, 7000)
		}, "", "1 whose kernels are not all there, or not done"},
		{"a kernel has not ended", anyTiming, func(r *rank) {
			r.t.Start(format.KernelCh, 3000, format.Record{Comm: 1, Rank: 1, Parent: r.coll(2000, "Reduce", "ncclInt8", 0, 9000, 1), B: 1})
		}, "", "1 whose kernels are not all there, or not done"},
		{"captured", anyTiming, func(r *rank) {
			call := r.t.Start(format.CollAPI, 1500, format.Record{Comm: 1, Rank: 1, Flags: 1})
			id := r.t.Start(format.Coll, 2000, format.Record{Comm: 1, Rank: 1, Parent: call, B: 9000, More: [7]uint64{r.f.Name("Reduce") | r.f.Name("ncclInt8")<<32, 0, 1 << 32}})
			r.kernel(id, 0, 3000, 9000, 7000)
		}, "", "1 captured into graphs"},
		{"small", inspector.Options{MinBytes: 8192}, func(r *rank) {
			r.kernel(r.coll(2000, "Reduce", "ncclFloat16", 0, 4095, 1), 0, 3000, 9000, 7000)
		}, "", "1 with fewer bytes"},
		{"nothing at all", anyTiming, func(r *rank) {
			r.kernel(r.coll(2000, "Reduce", "ncclFloat16", 0, 0, 1), 0, 3000, 9000, 7000)
		}, "", "1 with fewer bytes"},
		{"the size that the inspector wraps", anyTiming, func(r *rank) {
			r.kernel(r.coll(2000, "AllGather", "ncclUint8", 0, 9000, 1), 0, 3000, 9000, 7000)
		}, `"coll_msg_size_bytes":9000,"coll_exec_time_us":7,"coll_timing_source":"kernel_gpu","coll_algobw_gbs":5.142857,"coll_busbw_gbs":3.857143`, ""},
		{"a type that nobody knows", inspector.Options{MinBytes: 8192}, func(r *rank) {
			r.kernel(r.coll(2000, "ReduceScatter", "ncclFloat4", 0, 9000, 1), 0, 3000, 9000, 7000)
		}, `"coll":"ReduceScatter","coll_sn":0,"coll_msg_size_bytes":0`, ""},
		{"sends that are too small have no number", inspector.Options{MinBytes: 8192}, func(r *rank) {
			r.kernel(r.p2p(2000, "Recv", 2, 9000, 1), 0, 3000, 9000, 7000)
			r.kernel(r.p2p(12000, "Recv", 2, 10, 1), 0, 13000, 9000, 7000)
			r.kernel(r.p2p(22000, "Recv", 2, 9000, 1), 0, 23000, 9000, 7000)
		}, `"p2p_perf":{"p2p":"Recv","p2p_sn":2,"p2p_peer":2,"p2p_msg_size_bytes":36000`, "1 with fewer bytes"},
	} {
		r := newRank("h", "", 0xc0ffee)
		c.make(r)
		p := r.dump(t, c.o)
		text := lines(t, p)
		if !strings.Contains(text, c.want) || (c.want == "") != (text == "") {
			t.Errorf("%s: %q, want %q", c.what, text, c.want)
		}
		if p.Left.Text() != c.left {
			t.Errorf("%s: left out %q, want %q", c.what, p.Left.Text(), c.left)
		}
	}
}

// A file cannot choose the folder, nor break a line or a label.
func TestHostileNames(t *testing.T) {
	r := newRank("../../etc/x\"y\\", "a\nb\"c\\", 1)
	r.kernel(r.coll(2000, "All\"Reduce", "ncclInt8", 0, 9000, 1), 0, 3000, 9000, 7000)
	p := r.dump(t, inspector.Options{})
	if n := p.Name() + p.MetricsName(); strings.Contains(n, "/") {
		t.Errorf("a path: %s", n)
	}
	var one struct {
		Header struct {
			Name string `json:"comm_name"`
		}
	}
	if err := json.Unmarshal([]byte(lines(t, p)), &one); err != nil || one.Header.Name != `a?b"c\` {
		t.Errorf("%q, %v", one.Header.Name, err)
	}
	var b bytes.Buffer
	if err := p.WriteMetrics(&b); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.String(), `comm_name="a?b\"c\\",`) || strings.Count(b.String(), "\n") != 2 {
		t.Errorf("means: %s", b.String())
	}
}
