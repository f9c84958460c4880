package conform

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"

	"weft/internal/host"
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

type junitSuites struct {
	XMLName xml.Name     `xml:"testsuites"`
	Suites  []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Skipped  int         `xml:"skipped,attr"`
	Time     float64     `xml:"time,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Name    string     `xml:"name,attr"`
	Class   string     `xml:"classname,attr"`
	Time    float64    `xml:"time,attr"`
	Failure *junitFail `xml:"failure,omitempty"`
	Skipped *junitFail `xml:"skipped,omitempty"`
}

type junitFail struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// JUnit writes outcomes as JUnit XML, one suite for each table of each library.
func JUnit(w io.Writer, all []Outcome) error {
	var doc junitSuites
	at := map[string]int{}
	for _, o := range all {
		name := "library"
		if o.Version > 0 {
			name = fmt.Sprintf("%s v%d", family(o.Family), o.Version)
		}
		suite := o.Lib + " " + name
		i, ok := at[suite]
		if !ok {
			i = len(doc.Suites)
			at[suite] = i
			doc.Suites = append(doc.Suites, junitSuite{Name: suite})
		}
		s := &doc.Suites[i]
		c := junitCase{Name: o.Rule.ID, Class: o.Lib + "." + strings.ReplaceAll(name, " ", "_"), Time: o.Took.Seconds()}
		s.Tests++
		s.Time += c.Time
		switch {
		case o.Skip != "":
			s.Skipped++
			c.Skipped = &junitFail{Message: o.Skip}
		case !o.OK():
			s.Failures++
			c.Failure = &junitFail{Message: o.Fail, Text: "contract: " + o.Rule.Says + " (" + o.Rule.Basis + ")"}
		}
		s.Cases = append(s.Cases, c)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	return e.Encode(doc)
}
