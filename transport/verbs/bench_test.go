package verbs

import (
	"testing"

	"weft/internal/fakeibv"
	"weft/internal/knob"
	"weft/internal/report"
	"weft/transport/memory"
	"weft/transport/rdma"
	"weft/transport/verbs/machine"
)

const page = 4096 // bytes

// start opens a provider over a library of Go values.
func start(f *fakeibv.Lib, host *machine.Machine, env map[string]string) (*Provider, *report.Recorder, error) {
	log := new(report.Recorder)
	p, err := Open(Config{Knobs: knob.Parse(env), Log: log, host: host, lib: f.Table()})
	return p, log, err
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
