package conform

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"weft/abi"
	"weft/internal/build"
	"weft/internal/host"
	"weft/internal/simverbs"
	"weft/internal/trace"
	"weft/internal/trace/model"
	"weft/transport/record/format"
)

// recorded is what the one process that kept records in dir has recorded.
func recorded(t *testing.T, dir string) *model.Trace {
	t.Helper()
	files, bad, err := trace.Load([]string{dir})
	if err != nil || len(bad) != 0 || len(files) != 1 {
		t.Fatalf("%d files in %s: %v %v", len(files), dir, err, bad)
	}
	if files[0].Loss != (trace.Loss{}) || len(files[0].Notes) != 0 {
		t.Errorf("lost %+v, notes %q", files[0].Loss, files[0].Notes)
	}
	return model.New(files)
}

// profHost is a host that has weft's profiler table of a version.
func profHost(t *testing.T, v int, env ...string) (call func(slot string, a host.Args) *host.Reply, h *host.Host) {
	t.Helper()
	lib, err := build.Library()
	if err != nil {
		t.Fatal(err)
	}
	if h, err = host.Start(host.Options{Bin: hostProgram(t), Env: env}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Kill)
	l, err := h.Load(lib)
	if err != nil {
		t.Fatal(err)
	}
	table, err := l.Bind(host.FamilyProf, v, "")
	if err != nil {
		t.Fatal(err)
	}
	return func(slot string, a host.Args) *host.Reply {
		t.Helper()
		r, err := table.Call("main", slot, a)
		if err != nil {
			t.Fatalf("%s: %v", slot, err)
		}
		return r
	}, h
}

// TestProfile has every profiler table record a collective, its proxy's operation and step, and is killed then.
func TestProfile(t *testing.T) {
	first, last := host.FamilyProf.Versions()
	for v := first; v <= last; v++ {
		t.Run(fmt.Sprint("v", v), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			call, h := profHost(t, v, "WEFT_PROFILE=trace", "WEFT_PROFILE_SIZE=4", "WEFT_PROFILE_DIR="+dir)
			begin := call("init", host.Args{"name", "world", "commId", 77, "nranks", 4, "rank", 2, "nnodes", 2})
			if v == 3 { // NCCL 2.26 would hang
				if begin.Int("mask") != 0 || begin.Ptr("ctx") != 0 {
					t.Errorf("mask %#x, context %v", begin.Int("mask"), begin.Ptr("ctx"))
				}
				return
			}
			mask := int64(0xffdf)
			if v < 7 { // a kernel's phases came then
				mask &^= abi.ProfileKernelPhase
			}
			if begin.Int("mask") != mask || begin.Ptr("ctx") == 0 {
				t.Fatalf("mask %#x, context %v", begin.Int("mask"), begin.Ptr("ctx"))
			}
			// What NCCL does after a profiler of its own failed: handles and contexts that nobody gave.
			for _, none := range []host.Ptr{0, 1, 0xfff0000000000001} {
				call("stopEvent", host.Args{"handle", none})
				call("recordEventState", host.Args{"handle", none, "state", 9})
			}
			start := func(kind int, parent host.Ptr) host.Ptr {
				return call("startEvent", host.Args{"ctx", begin.Ptr("ctx"), "type", 1 << kind, "parent", parent}).Ptr("handle")
			}
			coll := start(format.Coll, 0)
			call("stopEvent", host.Args{"handle", coll}) // it has been enqueued
			op := start(format.ProxyOp, coll)
			step := start(format.ProxyStep, op)
			for _, state := range []int{8, 8, 8, 9, 9} { // as often as the proxy looks
				call("recordEventState", host.Args{"handle", step, "state", state})
			}
			call("stopEvent", host.Args{"handle", step})
			call("stopEvent", host.Args{"handle", op})
			open := start(format.ProxyStep, op)
			kinds := []uint8{format.Coll, format.ProxyOp, format.ProxyStep, format.ProxyStep}
			if v == last { // the last kind that the headers have; the types of older tables may be too narrow
				kinds = append(kinds, uint8(len(abi.ProfilerEvents)-1))
				call("stopEvent", host.Args{"handle", start(len(abi.ProfilerEvents)-1, 0)})
			}
			call("finalize", host.Args{"ctx", begin.Ptr("ctx")})
			call("stopEvent", host.Args{"handle", open}) // late, which some releases are
			h.Kill()

			p := recorded(t, dir).Processes[0]
			if len(p.Comms) != 1 || len(p.Events) != len(kinds) {
				t.Fatalf("%d communicators, %d events", len(p.Comms), len(p.Events))
			}
			for i, e := range p.Events {
				// The host's descriptors are zeroes: the operation's parent is of process 0, not of this one.
				if e.Type != kinds[i] || (e.Up != nil) != (i == 2 || i == 3) || e.Up != nil && e.Up != p.Events[1] || e.TypeName() != abi.ProfilerEvents[kinds[i]] {
					t.Errorf("event %d is %s under %v", i, e.TypeName(), e.Up)
				}
			}
			if n := len(p.Events[2].States); n != 2 {
				t.Errorf("a step has %d states, two were new: %+v", n, p.Events[2].States)
			}
			if c := p.Comms[0]; v >= 4 && (c.Of.Name != "world" || c.Rank != 2 || c.Of.Ranks != 4 || c.Of.ID != 77) {
				t.Errorf("the communicator is %+v", c)
			}
		})
	}
}

// TestProfileOfMessages reads the messages of connections that no profiler hears of, of the oldest table and the newest.
func TestProfileOfMessages(t *testing.T) {
	card := simverbs.Device{Name: "sim0", PCI: "0000:81:00.0", GIDs: []string{"10.101.0.1/24"}}
	first, last := host.FamilyNet.Versions()
	for _, rdma := range []bool{false, true} {
		for _, version := range []int{first, last} {
			t.Run(fmt.Sprintf("v%d rdma %v", version, rdma), func(t *testing.T) {
				t.Parallel()
				dir := filepath.Join(t.TempDir(), "made")
				env := []string{"WEFT_PROFILE=trace", "WEFT_PROFILE_SIZE=4", "WEFT_PROFILE_DIR=" + dir}
				if rdma {
					env = append(env, simulated(t, card)...)
				}
				const messages = 20
				sizes := []int64{8, 300000}
				checks(t, version, env, func(e *Env) {
					p := e.open("process")
					p.init()
					l := e.join(p, p, 0)
					a, b := p.buf(sizes[1]), p.buf(sizes[1])
					for i := range messages {
						e.run(l.recvOp(1, b), l.sendOp(a, sizes[i%2], 1))
					}
				})
				if names, err := os.ReadDir(dir); err != nil || len(names) != 1 {
					t.Fatal(names, err)
				}
				all := recorded(t, dir)
				if len(all.Connections) != 1 {
					t.Fatalf("%d connections, notes %q", len(all.Connections), all.Notes)
				}
				c := all.Connections[0]
				if len(c.Pairs) != messages || c.Sender.NetworkName() != map[bool]string{false: "TCP", true: "RDMA"}[rdma] {
					t.Fatalf("%d sends with their receive, of %d, over %s", len(c.Pairs), messages, c.Sender.NetworkName())
				}
				for i, m := range c.Pairs {
					if m.Send.Bytes != uint64(sizes[i%2]) || m.Receive.From > m.Receive.To || m.Send.From > m.Receive.To {
						t.Errorf("message %d: %+v, received as %+v", i, m.Send, m.Receive)
					}
				}
			})
		}
	}
}
