package info

import (
	"strings"
	"testing"
	"testing/fstest"

	"weft/internal/doctor"
	"weft/internal/doctor/fixture"
	"weft/internal/doctor/machine"
)

// Two bridges are one switch; what is below one root port without a switch meets in the processor.
func TestBetween(t *testing.T) {
	files := fstest.MapFS{}
	m := machine.OpenFS(files)
	at := func(numa int64, path string) place {
		return placeOf(m, &machine.Function{Path: "/sys/devices/" + path, NUMA: numa})
	}
	for _, c := range []struct {
		name string
		a, b place
		want Distance
		via  int
	}{
		{"one switch", at(0, "pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:00.0/0000:18:00.0"), at(0, "pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:01.0/0000:1b:00.0"), PIX, 1},
		{"a switch below a switch", at(0, "pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:00.0/0000:18:00.0/0000:19:00.0/0000:1a:00.0"),
			at(0, "pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:01.0/0000:1b:00.0"), PXB, 2},
		{"two below one", at(0, "pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:00.0/0000:18:00.0/0000:19:00.0/0000:1a:00.0"),
			at(0, "pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:01.0/0000:28:00.0/0000:29:00.0/0000:2a:00.0"), PXB, 3},
		{"two root ports", at(0, "pci0000:15/0000:15:01.0/0000:16:00.0"), at(0, "pci0000:15/0000:15:02.0/0000:17:00.0"), PHB, 0},
		{"switches of two root ports", at(0, "pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:00.0/0000:18:00.0"), at(0, "pci0000:25/0000:25:01.0/0000:26:00.0/0000:27:00.0/0000:28:00.0"), PHB, 2},
		{"two processors", at(0, "pci0000:15/0000:15:01.0/0000:16:00.0"), at(1, "pci0000:95/0000:95:01.0/0000:96:00.0"), SYS, 0},
		{"neither tells", at(-1, "pci0000:00/0000:00:05.0"), at(-1, "pci0000:00/0000:00:06.0"), PHB, 0},
	} {
		if d, via, why := between(c.a, c.b); d != c.want || len(via) != c.via || why == "" {
			t.Errorf("%s: %s by %v (%s), want %s by %d", c.name, d, via, why, c.want, c.via)
		}
		if d, _, _ := between(c.b, c.a); d != c.want {
			t.Errorf("%s, the other way: %s", c.name, d)
		}
	}
}

// The lesser of both ends counts, and where one does not tell its lanes 16 do.
func TestLinkWidth(t *testing.T) {
	for _, c := range []struct {
		speed, lanes, upSpeed, upLanes string
		want                           float64
	}{
		{"32.0 GT/s PCIe", "16", "32.0 GT/s PCIe", "16", 48},
		{"32.0 GT/s PCIe", "16", "16.0 GT/s PCIe", "8", 12},
		{"16.0 GT/s PCIe", "4", "", "", 24},
		{"5.0 GT/s PCIe", "8", "8.0 GT/s PCIe", "8", 3},
		{"", "", "", "", 12},
	} {
		files := fstest.MapFS{}
		for name, text := range map[string]string{"a/b/max_link_speed": c.speed, "a/b/max_link_width": c.lanes, "a/max_link_speed": c.upSpeed, "a/max_link_width": c.upLanes} {
			if text != "" {
				files[name] = &fstest.MapFile{Data: []byte(text + "\n")}
			}
		}
		if got := linkWidth(machine.OpenFS(files), "/a/b"); got != c.want {
			t.Errorf("%+v: %g", c, got)
		}
	}
}

// A network that does not tell its speed counts as 10 Gb/s, and what has no PCI function hangs from the first processor.
func TestVirtualInterface(t *testing.T) {
	x, err := doctor.Examine(machine.OpenFS(fixture.Machine(t, machines+"/roce.txtar", "")), 0)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []Distance{PHB, SYS} {
		if w := way(x, x.GPUs()[i], nic{name: "tun0"}); w.Distance != want || w.GBps != 1.25 || !strings.Contains(w.why, "no PCI address") {
			t.Errorf("GPU %d: %+v (%s), want %s", i, w, w.why, want)
		}
	}
}

// The widest way wins, then the shortest; equals share. The first five are what NCCL 2.30.7 took of such machines (simgpu, a topology
// file, processors of 10 GB/s), with GPUDirect RDMA and without.
func TestBest(t *testing.T) {
	on, off := direct{so: true, level: PXB}, direct{level: PXB}
	way := func(device string, d Distance, wide float64) Way {
		return Way{Device: device, Distance: d, wide: wide, as: d, why: string(d)}
	}
	for _, c := range []struct {
		name    string
		ways    []Way
		direct  direct
		sockets float64
		want    string
	}{
		{"one processor's", []Way{way("a", PIX, 48), way("b", SYS, 48)}, on, 10, "a"},
		{"the widest", []Way{way("a", PXB, 3.125), way("b", PHB, 12.5)}, on, 10, "b"},
		{"wide enough between processors", []Way{way("a", PIX, 3.125), way("b", SYS, 48)}, on, 10, "b"},
		{"the shortest of equals", []Way{way("a", PXB, 12.5), way("b", PHB, 12.5)}, on, 10, "a"},
		{"too narrow between processors", []Way{way("a", PIX, 12.5), way("b", SYS, 48)}, on, 10, "a"},
		{"the widest, through the processor", []Way{way("a", PXB, 3.125), way("b", PHB, 12.5)}, off, 10, "b"},
		{"all through the processor", []Way{way("a", PXB, 12.5), way("b", PHB, 12.5)}, off, 10, "a, b"},
		{"wide between processors", []Way{way("a", SYS, 48), way("b", PHB, 12.5)}, on, 40, "a"},
		{"none", nil, on, 6, "none"},
	} {
		for i := range c.ways {
			c.ways[i].detour(c.direct)
		}
		if got := names(best(c.ways, c.sockets)); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	for _, c := range []struct {
		ways      []Way
		want, why string
	}{
		{[]Way{way("a", SYS, 48), way("b", PHB, 12.5)}, "b", "PHB; a where NCCL takes the link between the processors for wide enough"},
		{[]Way{way("a", PHB, 48), way("b", PIX, 12.5)}, "a", "PHB; b is nearer (PIX) and narrower"},
		{[]Way{way("a", PHB, 48), way("b", PHB, 48)}, "a, b", "PHB; NCCL shares channels and GPUs out among them"},
		{nil, "none", "there is no device"},
	} {
		g := GPU{Ways: c.ways}
		if g.choose(); names(g.Nearest) != c.want || g.Why != c.why {
			t.Errorf("%+v (%s), want %s (%s)", g.Nearest, g.Why, c.want, c.why)
		}
	}
}
