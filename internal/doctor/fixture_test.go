package doctor

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weft/internal/doctor/fixture"
	"weft/internal/doctor/machine"
)

// examined is a machine of testdata under the rules.
func examined(t *testing.T, file, side string) *Exam {
	t.Helper()
	return examinedFS(t, fixture.Machine(t, filepath.Join("testdata", file+".txtar"), side))
}

func examinedFS(t *testing.T, files fs.FS) *Exam {
	t.Helper()
	x, err := Examine(machine.OpenFS(files), 0)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// Each rule finds what is wrong with its broken machine, and nothing else is; its healthy one is well.
func TestRules(t *testing.T) {
	for _, r := range Rules() {
		if r.across != nil {
			continue // TestAcross
		}
		t.Run(r.Code, func(t *testing.T) {
			found := examined(t, "rules/"+r.Code, "broken").Findings()
			if len(found) == 0 {
				t.Error("the broken machine is well")
			}
			for _, f := range found {
				if f.Code != r.Code {
					t.Errorf("%s finds something, too: %+v", f.Code, f)
				}
				if f.Title == "" || f.Evidence == "" || f.Consequence == "" || f.Remedy == "" || strings.Contains(f.Evidence+f.Remedy, "%!") {
					t.Errorf("a finding that leaves something out: %+v", f)
				}
			}
			for _, f := range examined(t, "rules/"+r.Code, "healthy").Findings() {
				t.Errorf("the healthy machine: %+v", f)
			}
		})
	}
}

// Every archive belongs to a rule; codes are unlike, and each rule says all that a user asks.
func TestDeclarations(t *testing.T) {
	known := map[string]bool{}
	for _, r := range Rules() {
		if known[r.Code] || len(r.Code) != len("WEFT-017") || codeNumber(r.Code) < 1 {
			t.Errorf("%q is no code of its own", r.Code)
		}
		known[r.Code] = true
		if r.Topic == "" || r.Title == "" || r.Symptom == "" || r.Consequence == "" || (r.check == nil) == (r.across == nil) || r.Severity != Breaks && r.Severity != Slows && r.Severity != Advice {
			t.Errorf("%s leaves something out", r.Code)
		}
	}
	if len(known) < 40 {
		t.Errorf("%d rules", len(known))
	}
	files, err := os.ReadDir("testdata/rules")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if code := strings.TrimSuffix(f.Name(), ".txtar"); !known[code] {
			t.Errorf("testdata/rules/%s belongs to no rule", f.Name())
		}
	}
}
