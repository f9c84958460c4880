package plugin

import (
	"errors"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"weft/abi"
	"weft/internal/report"
)

func (b *bench) counted(t *testing.T) int32 {
	t.Helper()
	n := int32(-1)
	if err := b.Devices(&abi.NetDevicesArgs{Ndev: &n}); err != nil {
		t.Fatal(err)
	}
	return n
}

func (b *bench) fuse(members ...int32) (int32, error) {
	d := int32(-7)
	props := abi.NetVDeviceProps{Ndevs: int32(len(members))}
	copy(props.Devs[:], members)
	err := b.MakeVDevice(&abi.NetMakeVDeviceArgs{Asked: props.Ndevs, D: &d, Props: &props})
	return d, err
}

func TestMakeVDevice(t *testing.T) {
	b := newBench(t, nil)
	d, props := int32(0), abi.NetVDeviceProps{Ndevs: 1}
	if err := b.MakeVDevice(&abi.NetMakeVDeviceArgs{Asked: 1, D: &d, Props: &props}); report.CauseOf(err) != report.Misuse {
		t.Errorf("before init: %v", err)
	}
	b.mustInit(abi.NetNewest)
	for want := int32(2); want < 4; want++ {
		if got, err := b.fuse(0, 1); err != nil || got != want || b.counted(t) != want+1 {
			t.Fatalf("device %d, %v, %d devices", got, err, b.counted(t))
		}
	}
	var p abi.NetProperties
	if err := b.GetProperties(&abi.NetGetPropertiesArgs{Dev: 2, Props: &p}); err != nil || p.Name == nil || p.PciPath == nil {
		t.Errorf("%+v, %v", p, err)
	}
	for _, c := range []struct {
		asked, named int32 // named is what an older table's shim has kept
		why          string
	}{{0, 0, "made of 0"}, {-1, -1, "made of -1"}, {6, 4, "6 devices in one, this release's table takes at most 4"}, {9, 9, "9 devices in one, this release's table takes at most 8"}} {
		props := abi.NetVDeviceProps{Ndevs: c.named}
		if err := b.MakeVDevice(&abi.NetMakeVDeviceArgs{Asked: c.asked, D: &d, Props: &props}); report.CauseOf(err) != report.Usage || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	b.engine.err = errors.New("no")
	if got, err := b.fuse(0, 1); err == nil || got != -7 || b.counted(t) != 4 {
		t.Errorf("device %d, %v, %d devices", got, err, b.counted(t))
	}
}

// Devices that cannot be one are refused, but by hosts of table v9 alone they are counted one by one.
func TestDevicesThatStayApart(t *testing.T) {
	refusal := report.Errorf(report.Usage, "makeVDevice", "they are of two kinds")
	for _, c := range []struct {
		tables []int
		apart  bool
	}{{[]int{9}, true}, {[]int{10}, false}, {[]int{8, 9}, false}, {[]int{9, 11}, false}, {[]int{abi.NetNewest}, false}} {
		b := newBench(t, nil)
		b.engine.err, b.engine.apart = refusal, true
		for _, table := range c.tables {
			b.mustInit(table)
		}
		b.counted(t)
		for _, members := range [][]int32{{0, 0}, {0, 2}, {-1, 0}} {
			if got, err := b.fuse(members...); err == nil || b.counted(t) != 2 {
				t.Errorf("v%d: %v make device %d, %d devices", c.tables, members, got, b.counted(t))
			}
		}
		if got, err := b.fuse(0, 1); (err == nil) != c.apart || c.apart && got != 3 {
			t.Errorf("v%d: device %d, %v", c.tables, got, err)
		}
		if !c.apart {
			if n := b.counted(t); n != 2 {
				t.Errorf("v%d: %d devices", c.tables, n)
			}
			continue
		}
		for round := range 3 {
			var names []string
			for i := int32(2); i < b.counted(t); i++ {
				var props abi.NetProperties
				if err := b.GetProperties(&abi.NetGetPropertiesArgs{Dev: i, Props: &props}); err != nil {
					t.Fatal(err)
				}
				names = append(names, unix.BytePtrToString(props.Name))
			}
			if got := strings.Join(names, ", "); got != "fused[0], fused[1]" {
				t.Errorf("round %d: made of %s", round, got)
			}
			b.engine.busy = round == 1 // then the same ones serve again
			b.mustInit(9)
			b.counted(t)
			if _, err := b.fuse(0, 1); err != nil {
				t.Error(err)
			}
		}
	}
}

// A count right after an init, on its thread, is of the devices that NCCL has
// not fused; any other is of all.
func TestDevicesAreCountedAnew(t *testing.T) {
	for table := tableCounts; table <= abi.NetNewest; table++ {
		b := newBench(t, nil)
		fused := func(want int32, members ...int32) {
			t.Helper()
			if n, err := b.fuse(members...); n != want || err != nil || b.counted(t) != want+1 {
				t.Errorf("v%d: device %d, want %d, %v, %d devices", table, n, want, err, b.counted(t))
			}
		}
		again := func(what string) {
			t.Helper()
			b.mustInit(table)
			if n := b.counted(t); n != 2 {
				t.Errorf("v%d: %d devices, as %s", table, n, what)
			}
		}
		b.mustInit(table)
		b.counted(t)
		b.fuse(0, 1)
		b.host.thread = 2 // another communicator is opened meanwhile
		b.mustInit(table)
		b.host.thread = 1
		if n := b.counted(t); n != 3 {
			t.Errorf("v%d: %d devices, as another thread called init", table, n)
		}
		fused(3, 1, 0)
		again("the library was loaded again")
		var props abi.NetProperties
		if err := b.GetProperties(&abi.NetGetPropertiesArgs{Dev: 2, Props: &props}); err != nil {
			t.Errorf("v%d: %v of a device that 2.24 remembers", table, err)
		}
		made := b.engine.fused
		fused(2, 0, 1)
		fused(3, 1, 0)
		if b.engine.fused != made {
			t.Errorf("v%d: %d devices are made again, not found", table, b.engine.fused-made)
		}
		again("the library was loaded again")
		fused(2, 1, 0) // another one: those of before are forgotten
		b.engine.busy = true
		fused(3, 0, 1)
		again("a communicator was opened that counts for itself")
		fused(3, 0, 1) // the one before it is in use
		fused(4, 1, 0)
	}
}
