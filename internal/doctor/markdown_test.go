package doctor

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write docs/doctor.md")

func TestDocsFollowTheRules(t *testing.T) {
	path := filepath.Join("..", "..", "docs", "doctor.md")
	if *update {
		if err := os.WriteFile(path, []byte(Markdown()), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(Markdown(), string(have)); d != "" {
		t.Errorf("docs/doctor.md is stale; go test ./internal/doctor -update (-want +got):\n%s", d)
	}
}

// Every field of the report has a name and a meaning, and no other is written.
func TestSchema(t *testing.T) {
	for _, part := range []any{Report{}, Host{}, Finding{}, NCCL{}, Row{}, Device{}, Interface{}} {
		for f := range reflect.TypeOf(part).Fields() {
			if f.Tag.Get("json") == "" || f.Tag.Get("doc") == "" {
				t.Errorf("%T.%s has no name or no meaning", part, f.Name)
			}
		}
	}
	text, err := json.Marshal(NewReport(examined(t, "machines/dgx-h100", "").Host()))
	if err != nil {
		t.Fatal(err)
	}
	var report map[string]any
	if err := json.Unmarshal(text, &report); err != nil {
		t.Fatal(err)
	}
	if report["schema"] != "weft.doctor/1" {
		t.Errorf("schema %v: a new one needs a new number, and this test", report["schema"])
	}
	host := report["hosts"].([]any)[0].(map[string]any)
	for part, fields := range map[string]string{
		"":           "name weft verdict rules findings nccl releases devices interfaces tcp",
		"releases":   "releases network",
		"devices":    "name state link gbps pcie_gbps numa used gid why",
		"interfaces": "name addresses up mtu mbps used",
	} {
		object := host
		if part != "" {
			object = host[part].([]any)[0].(map[string]any)
		}
		for _, name := range strings.Fields(fields) {
			if _, ok := object[name]; !ok {
				t.Errorf("%q: there is no %q, which %s has", part, name, Schema)
			}
		}
	}
}

// Reports of several hosts are one, with the worst verdict.
func TestReportsTogether(t *testing.T) {
	for _, c := range []struct {
		hosts  []Severity
		want   Severity
		status int
	}{{nil, OK, 0}, {[]Severity{OK, Advice}, Advice, 0}, {[]Severity{Slows, OK}, Slows, 1}, {[]Severity{Slows, Breaks, Advice}, Breaks, 1}} {
		var hosts []Host
		for _, s := range c.hosts {
			hosts = append(hosts, Host{Verdict: s})
		}
		if r := NewReport(hosts...); r.Verdict != c.want || r.Status() != c.status || len(r.Hosts) != len(hosts) {
			t.Errorf("%v: %s, status %d, want %s, %d", c.hosts, r.Verdict, r.Status(), c.want, c.status)
		}
	}
}

func TestFind(t *testing.T) {
	for _, text := range []string{"WEFT-070", "weft-070", "70", " 070 "} {
		if r, err := Find(text); err != nil || r.Code != "WEFT-070" {
			t.Errorf("%q is %q, %v", text, r.Code, err)
		}
	}
	for _, text := range []string{"", "WEFT-999", "memlock"} {
		if r, err := Find(text); err == nil {
			t.Errorf("%q is %s", text, r.Code)
		}
	}
}
