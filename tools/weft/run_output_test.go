package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The file has the fields that readers of nccl-tests' files ask for; one that is there is kept.
func TestRunOutputFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "results.json")
	t.Setenv("NCCL_PSK", "of this cluster")
	t.Setenv("WEFT_RUN_TOKEN", "of this run")
	for i, c := range []struct {
		plugin, args string
		results      int
		inPlace      bool
		status       int
	}{
		{good(t), "--sizes 8,64K --iters 3", 2, false, 0},
		{collPlugin(t, "coll.c"), "--coll allreduce --sizes 1K --iters 2", 1, true, 0},
		{good(t), "--sizes 8 --iters 1 --device none", 0, false, 1},
	} {
		status, out, errOut := tool(t, c.plugin, append(strings.Fields(c.args), "-J", name)...)
		path := name + []string{"", ".0", ".1"}[i]
		b, err := os.ReadFile(path)
		if err != nil || status != c.status || !strings.Contains(errOut, path) || strings.Contains(string(b), "of this") || !strings.Contains(string(b), "NCCL_PSK=(secret)") {
			t.Fatalf("%s: status %d, %v\n%s%s", c.args, status, err, out, errOut)
		}
		var d struct {
			Version   int
			Config    map[string]any
			Results   []map[string]any
			Bounds    map[string]any `json:"out_of_bounds"`
			Bandwidth map[string]any `json:"average_bus_bandwidth"`
			Errors    []string
		}
		if err := json.Unmarshal(b, &d); err != nil || d.Version != 3 || len(d.Results) != c.results || d.Bounds["okay"] != []string{"true", "false"}[c.status] || len(d.Errors) != c.status {
			t.Fatalf("%s: %v\n%s", c.args, err, b)
		}
		for _, r := range d.Results {
			placed, _ := r["out_of_place"].(map[string]any)
			if placed["time"].(float64) <= 0 || placed["bus_bw"].(float64) <= 0 || placed["nwrong"].(float64) != 0 || (r["in_place"] != nil) != c.inPlace || r["root"] != "    -1" || r["size"].(float64) < 8 {
				t.Errorf("%s: %v", c.args, r)
			}
		}
	}
	if got := strings.Join(withoutToken([]string{"weft", "run", "--token", "s", "--token=s", "-n", "2", "--token"}), " "); got != "weft run --token ... --token=... -n 2 --token" {
		t.Errorf("the command line is %q", got)
	}
	status, out, errOut := tool(t, good(t), "--sizes", "8", "-J", filepath.Join(name, "there"))
	if status != 2 || !strings.Contains(errOut, "--output_file") || out != "" {
		t.Errorf("status %d\n%s%s", status, out, errOut)
	}
}
