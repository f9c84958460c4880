package transport

import (
	"bytes"
	"strings"
	"testing"

	"weft/internal/hostcalls"
	"weft/internal/report"
	"weft/transport/rdma"
)

// exchange sends size bytes of src into dst with handles that the caller has.
func exchange(t *testing.T, s, r *Comm, src, dst []byte, from, to uintptr) {
	t.Helper()
	for i := range src {
		src[i]++
	}
	out := send(s, hostcalls.Buf{Addr: addrOf(src), Size: uint64(len(src)), Handle: from})
	in := recv(r, hostcalls.Buf{Addr: addrOf(dst), Size: uint64(len(dst)), Handle: to})
	drive(t, "a message", out, in)
	if out.code != 0 || in.code != 0 || !bytes.Equal(src, dst) {
		t.Fatalf("codes %d and %d, equal %v", out.code, in.code, bytes.Equal(src, dst))
	}
}

// What is registered on one comm of a device is good on all of them, whatever
// port carries them, and whichever came first.
func TestSimMemoryIsTheDevices(t *testing.T) {
	both := startSim(t, "=simA,simC", nil)
	near, far, none := startSim(t, "=simB", nil), startSim(t, "=simD", nil), startSim(t, "=simE", nil)
	src, dst := buffer(t, 200_000), buffer(t, 200_000)
	for i := range src {
		src[i] = byte(i)
	}
	type end struct {
		s, r *Comm
		mr   uintptr // of the peer
	}
	var ends []end
	var mine uintptr
	for _, p := range []*process{near, far, none, far} {
		var e end
		e.s, e.r = pair(t, both, p)
		back, forth := pair(t, p, both)
		for _, c := range []*Comm{e.s, e.r, back, forth} {
			if overVerbs(c) != (p != none) {
				t.Fatalf("%q", both.log.Lines())
			}
		}
		if mine == 0 {
			mine = register(t, e.s, src, 0).Handle
		}
		e.mr = register(t, e.r, dst, 0).Handle
		ends = append(ends, e, end{forth, back, 0})
		exchange(t, e.s, e.r, src, dst, mine, e.mr)
		exchange(t, back, forth, dst, src, e.mr, mine)
	}
	local, here := overRDMA(ends[2].s).Routes()[0].Local, both.Devices()[0].Ports
	other := overRDMA(ends[2].r).Routes()[0].Local               // the peer's: any that is not in use here
	if slot, err := here.Enter(other); err != nil || slot != 2 { // the device's own has the first
		t.Errorf("a port that is new gets slot %d, %v: the comm over %s has none", slot, err, local.Name)
	} else {
		here.Leave(slot)
	}
	if slot, err := here.Enter(local); err != nil || slot != 1 || local.Name != "simC" {
		t.Errorf("%s in slot %d, %v", local.Name, slot, err)
	} else {
		here.Leave(slot)
	}
	late := register(t, ends[2].s, src, 0).Handle // on a comm of the other port
	for i := 0; i < len(ends); i += 2 {
		exchange(t, ends[i].s, ends[i].r, src, dst, late, ends[i].mr)
	}
	if err := ends[0].s.Close(); err != nil { // the comm that it was registered on
		t.Fatal(err)
	}
	exchange(t, ends[2].s, ends[2].r, src, dst, mine, ends[2].mr)

	in := recv(ends[1].s, hostcalls.Buf{Addr: addrOf(src), Size: 100, Handle: mine}) // posted on near's port
	in.step()
	if err := ends[2].s.DeregMr(mine); err != nil { // by way of another comm
		t.Fatal(err)
	}
	if code := until(t, "the receive ends", in); code != testCode(&report.Error{Cause: report.Misuse}, 0) {
		t.Errorf("code %d", code)
	}
	out := send(ends[2].s, hostcalls.Buf{Addr: addrOf(src), Size: 100, Handle: mine})
	to := recv(ends[2].r, hostcalls.Buf{Addr: addrOf(dst), Size: 100, Handle: ends[2].mr})
	to.step()
	hostcalls.Test(to.req)
	if code := until(t, "a send from memory that is gone", out); code != testCode(&report.Error{Cause: report.Misuse}, 0) {
		t.Errorf("code %d", code)
	}
	for _, e := range ends {
		e.r.Close()
		if e != ends[0] {
			e.s.Close()
		}
	}
	for _, p := range []*process{both, near, far} { // what was never deregistered went with the last comm
		d := p.Devices()[0]
		if n := p.registered(d); n != 0 || d.Ports.Busy() {
			t.Errorf("%s: %d registrations are left; comms: %v", d.Name, n, d.Ports.Busy())
		}
	}
	noQPLeft(t, both, near)
	noQPLeft(t, both, far)
}

// A comm that fell back to TCP takes no memory that the CPU cannot reach, its
// own or another comm's, and says what to set.
func TestSimGPUMemoryStaysOffTCP(t *testing.T) {
	a, b, none := startSim(t, "=simA", nil), startSim(t, "=simB", nil), startSim(t, "=simE", nil)
	s, _ := pair(t, a, b)
	slow, r := pair(t, a, none)
	src := buffer(t, 4096)
	if _, err := slow.RegMr(addrOf(src), 4096, rdma.MemCUDA); report.CauseOf(err) != report.Usage {
		t.Errorf("%v", err)
	}
	a.Devices()[0].Pointers |= rdma.MemCUDA
	gpu, err := s.RegMr(addrOf(src), 4096, rdma.MemCUDA)
	if err != nil {
		t.Fatal(err)
	}
	in := recv(r, register(t, r, buffer(t, 4096), 4096))
	in.step()
	hostcalls.Test(in.req)
	out := send(slow, hostcalls.Buf{Addr: addrOf(src), Size: 4096, Handle: gpu})
	if code := until(t, "a send of GPU memory", out); code == 0 || a.log.Count("WARN isend", "over TCP", "NCCL_NET_GDR_LEVEL") != 1 {
		t.Errorf("code %d, %q", code, a.log.Lines())
	}
	drive(t, "host memory", send(slow, register(t, slow, src, 4096)), in)
}

// The ends agree on what both vendors' enhancements have in common, and a line
// says why there are none.
func TestSimECE(t *testing.T) {
	for _, c := range []struct {
		from, to, enable string
		want             string
		says             string // the listening side, once
	}{
		{"=simA", "=simB", "1", "ECE 0x4 of vendor 0x15b3", ""},
		{"=simA", "=simB", "0", "no ECE", ""},
		{"=simC", "=simD", "1", "no ECE", ""}, // nothing is offered
		{"=simX", "=simY", "1", "no ECE", "connections of simY do without ECE: ibv_set_ece returned operation not supported"},
		{"=simA", "=simF", "1", "no ECE", "simF declines a peer's ECE of vendor 0x15b3, options 0xc"},
		{"=simF", "=simA", "1", "no ECE", "simA declines a peer's ECE of vendor 0x14e4, options 0x1"},
	} {
		env := map[string]string{"NCCL_IB_ECE_ENABLE": c.enable, "NCCL_IB_QPS_PER_CONNECTION": "2", "WEFT_LAZY": "off"}
		a, b := startSim(t, c.from, env), startSim(t, c.to, nil)
		for range 2 {
			s, r := pair(t, a, b)
			for _, c2 := range []*Comm{s, r} {
				if got := overRDMA(c2).Describe(""); !strings.HasSuffix(got, ", "+c.want) {
					t.Errorf("%v: %s", c, got)
				}
			}
			move(t, s, r, 10_000)
			s.Close()
			r.Close()
		}
		said := a.log.Count("INFO", "connections of "+c.from[1:]+" do without ECE: ibv_query_ece returned operation not supported")
		if (said == 1) != (c.from == "=simC") || said > 1 {
			t.Errorf("%v: %d lines: %q", c, said, a.log.Lines())
		}
		if c.says != "" && b.log.Count("INFO", c.says) != 1 {
			t.Errorf("%v: %q", c, b.log.Lines())
		}
	}
}

// posted counts the requests of each lane.
func posted(c *Comm) (n []uint32) {
	for _, s := range fast(c).LaneStates(nil) {
		n = append(n, s.Posted)
	}
	return n
}

func TestSimSplit(t *testing.T) {
	for _, c := range []struct {
		split, min string
		size       int
		used       int // lanes that carry the message
	}{
		{"0", "65536", 1 << 20, 1}, {"1", "65536", 1 << 20, 4}, {"1", "65536", 65536, 1}, {"1", "65536", 65537, 4}, {"1", "65536", 0, 1}, {"1", "0", 4096, 4}, {"1", "2000000", 1 << 20, 1},
	} {
		env := map[string]string{"NCCL_IB_QPS_PER_CONNECTION": "4", "NCCL_IB_SPLIT_DATA_ON_QPS": c.split, "WEFT_STRIPE_MIN": c.min, "WEFT_LAZY": "off"}
		_, _, s, r := simPair(t, env)
		before := posted(s)
		move(t, s, r, c.size)
		used := 0
		for i, n := range posted(s) {
			if n > before[i] {
				used++
			}
		}
		if used != c.used || len(before) != 4 {
			t.Errorf("%+v: %d lanes of %d", c, used, len(before))
		}
		s.Close()
		r.Close()
	}
}
