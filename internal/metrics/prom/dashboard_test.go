package prom_test

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"weft/internal/metrics/prom"
)

// TestDashboard has the dashboard ask only for metrics that there are, by labels that they have.
func TestDashboard(t *testing.T) {
	described := make(chan *prometheus.Desc, 100)
	(&prom.Collector{}).Describe(described)
	close(described)
	labels := map[string]string{}
	for d := range described {
		m := regexp.MustCompile(`fqName: "(\w+)".*variableLabels: \{([^}]*)\}`).FindStringSubmatch(d.String())
		if m == nil {
			t.Fatalf("a description of another form: %s", d)
		}
		labels[m[1]] = "," + m[2] + ",le,"
	}
	text, err := os.ReadFile("../../../docs/grafana/weft.json")
	if err != nil {
		t.Fatal(err)
	}
	var all struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
		Templating struct {
			List []struct{ Definition string }
		}
	}
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	var asks []string
	for _, v := range all.Templating.List {
		asks = append(asks, v.Definition)
	}
	for _, p := range all.Panels {
		if len(p.Targets) == 0 {
			t.Errorf("%s asks for nothing", p.Title)
		}
		for _, target := range p.Targets {
			asks = append(asks, target.Expr)
		}
	}
	selector := regexp.MustCompile(`(weft_\w+)(?:\{([^}]*)\})?`)
	used := map[string]bool{}
	for _, ask := range asks {
		for _, m := range selector.FindAllStringSubmatch(ask, -1) {
			name := regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(m[1], "")
			if labels[name] == "" {
				t.Errorf("%s: there is no %s", ask, m[1])
				continue
			}
			used[name] = true
			for _, l := range regexp.MustCompile(`(\w+)\s*[=!]`).FindAllStringSubmatch(m[2], -1) {
				if !strings.Contains(labels[name], ","+l[1]+",") {
					t.Errorf("%s: %s has no label %s, but %s", ask, name, l[1], labels[name])
				}
			}
		}
	}
	if len(used) < 8 {
		t.Errorf("it asks for %v only", used)
	}
}
