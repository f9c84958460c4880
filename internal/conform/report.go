package conform

import (
	"fmt"
	"io"
	"strings"

	"weft/internal/host"
	"weft/internal/junit"
)

// Label names what an outcome is about: the table and the rule.
func (o *Outcome) Label() string {
	if o.Version == 0 {
		return "library " + o.Rule.ID
	}
	return fmt.Sprintf("%s v%d %s", family(o.Family), o.Version, o.Rule.ID)
}

func family(f host.Family) string {
	switch f {
	case host.FamilyColl:
		return "collNet"
	case host.FamilyProf:
		return "profiler"
	case host.FamilyTune:
		return "tuner"
	}
	return "net"
}

// TAP writes outcomes as Test Anything Protocol, version 13.
type TAP struct {
	W   io.Writer
	n   int
	lib string
}

// Report writes one test point.
func (t *TAP) Report(o Outcome) {
	if t.n == 0 {
		fmt.Fprintln(t.W, "TAP version 13")
	}
	if o.Lib != t.lib {
		fmt.Fprintf(t.W, "# %s\n", o.Lib)
		t.lib = o.Lib
	}
	t.n++
	switch {
	case o.Skip != "":
		fmt.Fprintf(t.W, "ok %d - %s # SKIP %s\n", t.n, o.Label(), o.Skip)
	case o.OK():
		fmt.Fprintf(t.W, "ok %d - %s\n", t.n, o.Label())
	default:
		fmt.Fprintf(t.W, "not ok %d - %s\n  ---\n  found: %q\n  contract: %q\n  basis: %q\n  ...\n", t.n, o.Label(), o.Fail, o.Rule.Says, o.Rule.Basis)
	}
}

// End writes the plan.
func (t *TAP) End() { fmt.Fprintf(t.W, "1..%d\n", t.n) }

// JUnit writes outcomes as JUnit XML, one suite for each table of each library.
func JUnit(w io.Writer, all []Outcome) error {
	var doc junit.Document
	for _, o := range all {
		name := "library"
		if o.Version > 0 {
			name = fmt.Sprintf("%s v%d", family(o.Family), o.Version)
		}
		var failed, skipped *junit.Reason
		switch {
		case o.Skip != "":
			skipped = &junit.Reason{Message: o.Skip}
		case !o.OK():
			failed = &junit.Reason{Message: o.Fail, Text: "contract: " + o.Rule.Says + " (" + o.Rule.Basis + ")"}
		}
		doc.Suite(o.Lib+" "+name).Add(o.Rule.ID, o.Lib+"."+strings.ReplaceAll(name, " ", "_"), o.Took, failed, skipped)
	}
	return doc.Write(w)
}
