package plugin

import (
	"errors"
	"strings"
	"testing"

	"weft/abi"
	"weft/transport/rdma"
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
	if err := b.MakeVDevice(&abi.NetMakeVDeviceArgs{Asked: 1, D: &d, Props: &props}); rdma.CauseOf(err) != rdma.Misuse {
		t.Errorf("before init: %v", err)
	}
	b.mustInit(12)
	for want := int32(2); want < 4; want++ {
		if got, err := b.fuse(0, 1); err != nil || got != want || b.counted(t) != want+1 {
			t.Fatalf("device %d, %v, %d devices", got, err, b.counted(t))
		}
	}
	var p abi.NetProperties
	if err := b.GetProperties(&abi.NetGetPropertiesArgs{Dev: 2, Props: &p}); err != nil || p.Name == nil || p.PciPath == nil {
		t.Errorf("%+v, %v", p, err)
	}
	for _, a := range []abi.NetMakeVDeviceArgs{{Asked: 1, Props: &props}, {Asked: 1, D: &d}} {
		if err := b.MakeVDevice(&a); rdma.CauseOf(err) != rdma.Misuse {
			t.Errorf("%+v: %v", a, err)
		}
	}
	for _, c := range []struct {
		asked, named int32 // named is what an older table's shim has kept
		why          string
	}{{0, 0, "made of 0"}, {-1, -1, "made of -1"}, {6, 4, "6 devices in one, this release's table takes at most 4"}, {9, 9, "9 devices in one, this release's table takes at most 8"}} {
		props := abi.NetVDeviceProps{Ndevs: c.named}
		if err := b.MakeVDevice(&abi.NetMakeVDeviceArgs{Asked: c.asked, D: &d, Props: &props}); rdma.CauseOf(err) != rdma.Usage || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	b.engine.err = errors.New("no")
	if got, err := b.fuse(0, 1); err == nil || got != -7 || b.counted(t) != 4 {
		t.Errorf("device %d, %v, %d devices", got, err, b.counted(t))
	}
}

// NCCL that loads the library again counts devices after its init, and must not
// take fused ones for others; one that only opens another communicator, maybe
// between fusing and counting in another thread, goes on with them.
func TestDevicesAreCountedAnew(t *testing.T) {
	for _, table := range []int{9, 10, 11, 12} {
		b := newBench(t, nil)
		ctx := b.mustInit(table)
		if n := b.counted(t); n != 2 {
			t.Fatalf("v%d: %d devices", table, n)
		}
		b.fuse(0, 1)
		if table >= tableContext {
			second := b.mustInit(table)
			if n := b.counted(t); n != 3 {
				t.Errorf("v%d: %d devices, as another communicator was opened", table, n)
			}
			if err := b.Finalize(&abi.NetFinalizeArgs{Ctx: ctx}); err != nil {
				t.Fatal(err)
			}
			ctx = second
		}
		if n, err := b.fuse(1, 0); n != 3 || err != nil || b.counted(t) != 4 {
			t.Fatalf("v%d: device %d, %v, %d devices", table, n, err, b.counted(t))
		}
		if table >= tableContext {
			if err := b.Finalize(&abi.NetFinalizeArgs{Ctx: ctx}); err != nil {
				t.Fatal(err)
			}
		}
		made := len(b.host.strings)
		b.mustInit(table)
		if n := b.counted(t); n != 2 {
			t.Errorf("v%d: %d devices, as the library was loaded again", table, n)
		}
		if n, err := b.fuse(0, 1); n != 2 || err != nil || b.counted(t) != 3 || len(b.host.strings) != made {
			t.Errorf("v%d: device %d, %v, %d strings of %d", table, n, err, len(b.host.strings), made)
		}
	}
}
