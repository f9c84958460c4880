package conform

import (
	"bytes"
	"encoding/xml"
	"strings"
	"testing"
	"time"

	"weft/internal/host"
	"weft/internal/junit"
)

var outcomes = []Outcome{
	{Lib: "libx.so", Family: host.FamilyNet, Rule: ruleLoad},
	{Lib: "libx.so", Family: host.FamilyNet, Version: 12, Rule: &Rule{ID: "size.zero", Says: "it arrives", Basis: "doc"}, Took: time.Second},
	{Lib: "libx.so", Family: host.FamilyNet, Version: 12, Rule: &Rule{ID: "size.odd", Says: `a < b & "c"`, Basis: "doc"}, Fail: "byte 3\nis wrong"},
	{Lib: "libx.so", Family: host.FamilyColl, Version: 3, Rule: &Rule{ID: "coll.init"}, Skip: "not asked"},
}

func TestTAP(t *testing.T) {
	var b strings.Builder
	tap := TAP{W: &b}
	for _, o := range outcomes {
		tap.Report(o)
	}
	tap.End()
	const want = `TAP version 13
# libx.so
ok 1 - library lib.load
ok 2 - net v12 size.zero
not ok 3 - net v12 size.odd
  ---
  found: "byte 3\nis wrong"
  contract: "a < b & \"c\""
  basis: "doc"
  ...
ok 4 - collNet v3 coll.init # SKIP not asked
1..4
`
	if b.String() != want {
		t.Errorf("got\n%s", b.String())
	}
}

func TestJUnit(t *testing.T) {
	var b bytes.Buffer
	if err := JUnit(&b, outcomes); err != nil {
		t.Fatal(err)
	}
	var doc junit.Document
	if err := xml.Unmarshal(b.Bytes(), &doc); err != nil {
		t.Fatalf("%v in\n%s", err, b.String())
	}
	if len(doc.Suites) != 3 {
		t.Fatalf("%d suites, want library, net v12 and collNet v3", len(doc.Suites))
	}
	net := doc.Suites[1]
	if net.Name != "libx.so net v12" || net.Tests != 2 || net.Failures != 1 || net.Skipped != 0 || net.Time != 1 {
		t.Errorf("suite %+v", net)
	}
	if f := net.Cases[1].Failure; f == nil || f.Message != "byte 3\nis wrong" || !strings.Contains(f.Text, `a < b & "c"`) {
		t.Errorf("failure %+v", f)
	}
	if doc.Suites[2].Skipped != 1 {
		t.Errorf("suite %+v", doc.Suites[2])
	}
}

// TestRules requires of every rule a name of its own, in two parts, and both texts.
func TestRules(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range AllRules() {
		if seen[r.ID] || !strings.Contains(r.ID, ".") || r.Says == "" || r.Basis == "" {
			t.Errorf("%+v", r)
		}
		if r.To != 0 && r.To < r.From || r.Gate && r.Care {
			t.Errorf("%s: from v%d to v%d, gate %v, care %v", r.ID, r.From, r.To, r.Gate, r.Care)
		}
		seen[r.ID] = true
	}
}
