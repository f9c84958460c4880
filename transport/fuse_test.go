package transport

import (
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"weft/internal/hostcalls"
	"weft/internal/report"
	"weft/transport/device"
	"weft/transport/lanes"
	"weft/transport/tcp"
	"weft/transport/wire"
)

// fusedWith fuses devices of p and makes them what its connects and listens use.
func (p *process) fusedWith(t testing.TB, members ...int) *device.Device {
	t.Helper()
	d, err := p.Fuse(members)
	if err != nil {
		t.Fatal(err)
	}
	p.dev = d.Index
	return d
}

func TestFuse(t *testing.T) {
	p := startSim(t, "=simA,simC", nil)
	d := p.fusedWith(t, 0, 1)
	if d.Index != 2 || d.Name != "simA+simC" || d.SpeedMbps != 200_000 || len(p.Devices()) != 3 || d.MaxComms != simQPs || d.Verbs == nil || d.Verbs.InfiniBand {
		t.Errorf("%+v", d.Device)
	}
	if again := p.fusedWith(t, 0, 1); again.Index != 3 || again.Name != "simA+simC'" {
		t.Errorf("%+v", again.Device)
	}
	if one := p.fusedWith(t, 1); one.Name != "simC" { // in NCCL's topology, which tells devices by their names, it takes that one's place
		t.Errorf("%+v", one.Device)
	}
	for _, c := range []struct {
		members []int
		why     string
	}{
		{nil, "0 devices in one, legal are 1 to 8"}, {[]int{0, 1, 0, 1, 0, 1, 0, 1, 0}, "9 devices in one, legal are 1 to 8"},
		{[]int{0, 0}, "simA twice in one device"}, {[]int{0, 2}, "device 2 of 2 that can be fused"}, {[]int{-1}, "device -1 of 2"}, {[]int{0, 99}, "device 99 of 2"},
	} {
		if _, err := p.Fuse(c.members); report.CauseOf(err) != report.Usage || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%v: %v, want %q", c.members, err, c.why)
		}
	}
	if _, err := startSim(t, "=simA,simI", nil).Fuse([]int{0, 1}); report.CauseOf(err) != report.Usage || !strings.Contains(err.Error(), "simA is RoCE, simI is InfiniBand") {
		t.Errorf("two link layers: %v", err)
	}
	if off := startSim(t, "=simA,simC", map[string]string{"NCCL_IB_MERGE_NICS": "0"}); true {
		if _, err := off.Fuse([]int{0, 1}); report.CauseOf(err) != report.Usage || !strings.Contains(err.Error(), "NCCL_IB_MERGE_NICS=0") {
			t.Errorf("%v", err)
		} else if report.Say(off.log, err); off.log.Count("WARN") != 0 || off.log.Count("INFO NET makeVDevice: NCCL_IB_MERGE_NICS=0; NCCL uses") != 1 {
			t.Errorf("%q", off.log.Lines())
		}
		if _, err := off.Fuse([]int{1}); err != nil {
			t.Errorf("%v", err)
		}
	}
	for n := 3; n < 256; n++ {
		p.fusedWith(t, 0)
	}
	if _, err := p.Fuse([]int{0}); report.CauseOf(err) != report.Usage || !strings.Contains(err.Error(), "there are 256 fused devices already") {
		t.Errorf("%v", err)
	}
	l, _ := p.listen(t, wire.HandleMax)
	if p.Unfuse() || len(p.Devices()) != 2+256 {
		t.Error("a device with a listen on it is gone")
	}
	l.Close()
	if !p.Unfuse() || len(p.Devices()) != 2 {
		t.Error("fused devices are left")
	}
	p.dev = 2
	if _, err := p.ctx.Listen(2, make([]byte, wire.HandleMax)); report.CauseOf(err) != report.Misuse {
		t.Errorf("%v", err)
	}
}

// A comm of fused devices runs over all of them, whatever the other side has,
// and uses those that reach it.
func TestSimFused(t *testing.T) {
	for _, c := range []struct {
		name         string
		here, there  string
		mine, theirs []int
		pairs        string
	}{
		{"two and two", "=simA,simC", "=simB,simD", []int{0, 1}, []int{0, 1}, "simA-0 simC-1"},
		{"crossed", "=simA,simC", "=simB,simD", []int{0, 1}, []int{1, 0}, "simA-0 simC-1"},
		{"two and one", "=simA,simC", "=simB,simD", []int{0, 1}, []int{1}, "simC-1"},
		{"one and two", "=simC", "=simB,simD", []int{0}, []int{0, 1}, "simC-1"},
		{"one of a subnet and two", "=simA", "=simB,simF", []int{0}, []int{0, 1}, "simA-0 simA-1"},
		{"two of a subnet and one", "=simB,simF", "=simA", []int{0, 1}, []int{0}, "simB-0 simF-0"},
		{"three and two", "=simA,simB,simC", "=simD,simF", []int{0, 1, 2}, []int{1, 0}, "simA-1 simC-0 simB-1"},
		{"InfiniBand", "=simI,simK", "=simJ,simL", []int{0, 1}, []int{0, 1}, "simI-0 simK-1"},
		{"InfiniBand, two and one", "=simI,simK", "=simJ", []int{0, 1}, []int{0}, "simI-0 simK-0"},
		{"none of them", "=simA,simC", "=simE", []int{0, 1}, []int{0}, ""},
	} {
		for _, mode := range []string{"off", "background"} {
			t.Run(c.name+", "+mode, func(t *testing.T) {
				env := map[string]string{"NCCL_IB_QPS_PER_CONNECTION": "2", "WEFT_FLUSH": "always", "WEFT_STRIPE_MIN": "1024", "WEFT_LAZY": mode}
				a, b := startSim(t, c.here, env), startSim(t, c.there, env)
				mine, theirs := a.fusedWith(t, c.mine...), b.fusedWith(t, c.theirs...)
				for range simQPs / 4 {
					s, r := pair(t, a, b)
					var got []string
					if v, is := s.Carrier().(*lanes.Carrier); is {
						for i := range v.Pairs {
							got = append(got, v.Pairs[i].Local.Name+"-"+string(rune('0'+v.Pairs[i].PeerIndex)))
						}
						if len(v.PairAt) != 2*len(v.Pairs) || len(r.Carrier().(*lanes.Carrier).Pairs) != len(v.Pairs) {
							t.Errorf("%d lanes over %d pairs", len(v.PairAt), len(v.Pairs))
						}
						grown(t, s, r, len(v.PairAt))
					}
					if strings.Join(got, " ") != c.pairs {
						t.Fatalf("over %v, want %v: %q", got, c.pairs, a.log.Lines())
					}
					before := posted(s)
					for _, size := range []int{0, 1, 1024, 1025, 100_001, 1 << 20} {
						move(t, s, r, size)
					}
					for i, n := range posted(s) {
						if n == before[i] && c.pairs != "" {
							t.Errorf("lane %d carries nothing", i)
						}
					}
					to := register(t, r, buffer(t, 4096), 4096)
					if req, code := hostcalls.Iflush(r.Handle(), to); code != 0 || (req != 0) != (c.pairs != "") {
						t.Errorf("flush: request %#x, code %d", req, code)
					} else if req != 0 && until(t, "the flush ends", &transfer{req: req}) != 0 {
						t.Error("the flush fails")
					}
					s.Close()
					r.Close()
				}
				for p, d := range map[*process]*device.Device{a: mine, b: theirs} {
					if d.Ports.Busy() || p.registered(d) > 0 {
						t.Errorf("%s is in use", d.Name)
					}
				}
			})
		}
	}
}

// A member that does not work is left out, with a line that says so, and left alone
// for a while, as it cost time; then it is tried again.
func TestSimFusedWithoutABrokenMember(t *testing.T) {
	for mode, says := range map[string]string{"off": "left out", "background": "goes on with 1 of 2 lanes"} {
		t.Run(mode, func(t *testing.T) {
			env := map[string]string{"WEFT_LAZY": mode}
			a, b := startSim(t, "=simA,simC", env), startSim(t, "=simB,simD", env)
			a.fusedWith(t, 0, 1)
			b.fusedWith(t, 0, 1)
			command(t, "blackhole simD both")
			s, r := pair(t, a, b)
			eventually(t, "it is said", func() bool { return a.log.Count("INFO", "simC to ", "device 1", says) == 1 })
			next, nextIn := pair(t, a, b)
			command(t, "blackhole simD off")
			if v, is := next.Carrier().(*lanes.Carrier); !is || len(v.Pairs) != 1 || v.Pairs[0].Local.Name != "simA" || a.log.Count("INFO", "simC to its device 1", "left out", "it failed") != 1 {
				t.Errorf("%+v: %q", v, a.log.Lines())
			}
			for _, size := range []int{100, 1 << 20} {
				move(t, s, r, size)
				move(t, next, nextIn, size)
			}
			if len(posted(s)) != 1 || len(posted(r)) != 1 {
				t.Errorf("%d and %d lanes", len(posted(s)), len(posted(r)))
			}
			rested(s)
			again, againIn := pair(t, a, b)
			grown(t, again, againIn, 2)
			move(t, again, againIn, 1<<20)
			noneLeft(t, s, r, next, nextIn, again, againIn)
		})
	}
}

// loopbacks are interfaces with 127.0.0.first and on, as of cards.
func loopbacks(first, n int) (all []*tcp.Device) {
	for i := range n {
		d := netDevice(i, "lo", 1, fmt.Sprintf("127.0.0.%d/8", first+i))
		d.PCIPath = fmt.Sprintf("/sys/devices/pci0000:00/0000:00:0%d.0", i)
		all = append(all, d)
	}
	return all
}

// Over TCP the streams of a fused device take its interfaces in turn.
func TestFusedTCP(t *testing.T) {
	for _, c := range []struct{ mine, theirs, streams int }{{2, 2, 2}, {1, 2, 2}, {2, 1, 1}, {3, 2, 2}} {
		a, b := start(t, nil, loopbacks(1, c.mine)...), start(t, nil, loopbacks(4, c.theirs)...)
		a.fusedWith(t, []int{0, 1, 2}[:c.mine]...)
		b.fusedWith(t, []int{0, 1, 2}[:c.theirs]...)
		s, r := pair(t, a, b)
		fds := fdsOf(s)
		remotes := map[[4]byte]bool{}
		for _, fd := range fds {
			p, err := unix.Getpeername(fd)
			if err != nil {
				t.Fatal(err)
			}
			remotes[p.(*unix.SockaddrInet4).Addr] = true
			if most, err := unix.GetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT); err != nil || (most == 128<<10) != (c.streams > 1) {
				t.Errorf("%+v: a stream takes %d bytes that it cannot send yet, %v", c, most, err)
			}
		}
		if len(fds) != c.streams || len(remotes) != min(c.theirs, c.streams) {
			t.Errorf("%+v: %d streams to %v", c, len(fds), remotes)
		}
		if n := min(c.theirs, c.streams); a.log.Count("INFO", " over tcp", "127.0.0.4, ", "to 127.0.0.5") != map[bool]int{true: 1}[n > 1] {
			t.Errorf("%+v: %q", c, a.log.Lines())
		}
		move(t, s, r, 4<<20)
		s.Close()
		r.Close()
	}
}
