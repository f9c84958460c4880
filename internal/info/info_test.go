package info

import (
	"io"
	"path/filepath"
	"strings"
	"testing"

	"weft/internal/doctor"
	"weft/internal/doctor/fixture"
	"weft/internal/doctor/machine"
	"weft/internal/golden"
)

const machines = "../doctor/testdata/machines"

// look is what is told of a machine of doctor's.
func look(t *testing.T, name string) *Report {
	t.Helper()
	x, err := doctor.Examine(machine.OpenFS(fixture.Machine(t, filepath.Join(machines, name+".txtar"), "")), 0)
	if err != nil {
		t.Fatal(err)
	}
	r := New(x)
	r.Weft = "weft VERSION"
	return r
}

func text(t *testing.T, r *Report, part Part) string {
	t.Helper()
	var b strings.Builder
	write := r.Text
	if part != All {
		write = func(w io.Writer) error { return r.Part(w, part) }
	}
	if err := write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// Whole machines, as they are told.
func TestMachines(t *testing.T) {
	for _, name := range []string{"bare", "roce", "dgx-h100", "dgx-spark", "dgx-spark-broken", "cloud-vm", "container-broken", "node-broken"} {
		t.Run(name, func(t *testing.T) {
			golden.File(t, filepath.Join("testdata", name+".txt"), text(t, look(t, name), All)+"\n"+text(t, look(t, name), GPUs))
		})
	}
}
