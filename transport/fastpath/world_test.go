package fastpath_test

import (
	"fmt"
	"os"
	"sync"
	"testing"

	"weft/internal/hostcalls"
	"weft/internal/knob"
	"weft/internal/report"
	"weft/internal/simverbs"
	"weft/transport/fastpath"
	"weft/transport/memory"
	"weft/transport/rdma"
	"weft/transport/verbs"
)

// world is that of this process's simulated libibverbs: simA --- 10.9.1.0/24 --- simB
var world = simverbs.World{Name: fmt.Sprintf("fastpath-%d", os.Getpid()), Devices: []simverbs.Device{
	{Name: "simA", PCI: "0000:81:00.0", GIDs: []string{"10.9.1.1/24", "2001:db8::1/64"}, Speed: 400_000, ECEVendor: 5564, ECEOptions: 12},
	{Name: "simB", PCI: "0000:82:00.1", GIDs: []string{"10.9.1.2/24", "10.9.1.2/24 v1"}, MTU: 1024, ECEVendor: 5564, ECEOptions: 12},
}}

var enter = sync.OnceValues(world.Enter)

func TestMain(m *testing.M) {
	fastpath.SetUpcalls(hostcalls.Upcalls())
	code := m.Run()
	world.Remove()
	os.Exit(code)
}

// command says one line to the simulation.
func command(t *testing.T, format string, a ...any) {
	t.Helper()
	if err := world.Control(os.Getpid(), fmt.Sprintf(format, a...)); err != nil {
		t.Fatal(err)
	}
}

// laneProvider opens the devices of the world.
func laneProvider(t *testing.T) *verbs.Provider {
	t.Helper()
	lib, err := enter()
	if err != nil {
		t.Fatal(err)
	}
	var log report.Recorder
	p, err := verbs.Open(verbs.Config{Knobs: knob.Parse(map[string]string{"NCCL_IBVERBS_LIB": lib}), Log: &log})
	if err != nil {
		t.Fatal(err, log.Lines())
	}
	t.Cleanup(p.Close)
	return p
}

// hostMemory names host memory that nobody touches.
func hostMemory(t *testing.T, addr uintptr, size uint64) *memory.Buffer {
	t.Helper()
	b, err := memory.NewBuffer(addr, size, rdma.MemHost)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
