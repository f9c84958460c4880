package simverbs_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weft/internal/simverbs"
)

func world(t *testing.T, w simverbs.World) (simverbs.World, string) {
	t.Helper()
	dist, err := simverbs.Dist()
	if err != nil {
		t.Fatal(err)
	}
	w.Name = fmt.Sprintf("%s-%d", strings.ReplaceAll(t.Name(), "/", "-"), os.Getpid())
	t.Cleanup(func() {
		if err := w.Remove(); err != nil {
			t.Error(err)
		}
	})
	return w, dist
}

var no = false

// Plain verbs calls follow the rules of reliable connections on every kind of world.
func TestConformance(t *testing.T) {
	pair := func(d simverbs.Device) []simverbs.Device {
		a, b := d, d
		a.Name, a.GIDs = "sim0", []string{"10.101.0.1/24"}
		b.Name, b.GIDs = "sim1", []string{"10.101.0.2/24"}
		return []simverbs.Device{a, b}
	}
	for _, c := range []struct {
		name string
		w    simverbs.World
	}{
		{"two devices", simverbs.World{Devices: pair(simverbs.Device{})}},
		{"one device with itself", simverbs.World{Devices: []simverbs.Device{{Name: "sim0", GIDs: []string{"fd00::1/64"}}}}},
		{"copied by system calls", simverbs.World{Share: &no, Devices: pair(simverbs.Device{})}},
		{"slow and far", simverbs.World{Devices: pair(simverbs.Device{Rate: 0.4, DelayUs: 20})}},
		{"IB", simverbs.World{Devices: pair(simverbs.Device{Link: "infiniband", MTU: 2048})}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, dist := world(t, c.w)
			env, err := w.Env(dist, "")
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, filepath.Join(dist, "conform"))
			cmd.Env = append(os.Environ(), env...)
			if len(c.w.Devices) == 2 && c.w.Devices[0].Rate == 0 {
				cmd.Env = append(cmd.Env, "WEFT_SIMVERBS_CTL="+filepath.Join(t.TempDir(), "ctl"))
			}
			out, err := cmd.CombinedOutput()
			lines := bufio.NewScanner(strings.NewReader(string(out)))
			for lines.Scan() {
				if !strings.HasPrefix(lines.Text(), "ok ") {
					t.Log(lines.Text())
				}
			}
			if err != nil {
				t.Errorf("conform: %v", err)
			}
		})
	}
}

func TestWorldNeedsName(t *testing.T) {
	if _, err := (simverbs.World{}).Env("dist", ""); err == nil {
		t.Error("two tests would meet")
	}
}
