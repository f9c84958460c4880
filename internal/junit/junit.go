// Package junit writes test results as JUnit XML, which CI systems read.
package junit

import (
	"encoding/xml"
	"io"
	"time"
)

// Document is a report of several suites.
type Document struct {
	XMLName xml.Name `xml:"testsuites"`
	Suites  []*Suite `xml:"testsuite"`
}

// Suite is what was tested together.
type Suite struct {
	Name     string  `xml:"name,attr"`
	Tests    int     `xml:"tests,attr"`
	Failures int     `xml:"failures,attr"`
	Skipped  int     `xml:"skipped,attr"`
	Time     float64 `xml:"time,attr"` // seconds
	Cases    []Case  `xml:"testcase"`
}

// Case is one test.
type Case struct {
	Name    string  `xml:"name,attr"`
	Class   string  `xml:"classname,attr"`
	Time    float64 `xml:"time,attr"` // seconds
	Failure *Reason `xml:"failure,omitempty"`
	Skipped *Reason `xml:"skipped,omitempty"`
}

// Reason says why a test failed or was left out.
type Reason struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// Suite is that of a name, made where there is none.
func (d *Document) Suite(name string) *Suite {
	for _, s := range d.Suites {
		if s.Name == name {
			return s
		}
	}
	s := &Suite{Name: name}
	d.Suites = append(d.Suites, s)
	return s
}

// Add takes a test that passed, that failed, or that was left out.
func (s *Suite) Add(name, class string, took time.Duration, failed, skipped *Reason) {
	s.Cases = append(s.Cases, Case{name, class, took.Seconds(), failed, skipped})
	s.Tests++
	s.Time += took.Seconds()
	if failed != nil {
		s.Failures++
	}
	if skipped != nil {
		s.Skipped++
	}
}

// Write writes the document.
func (d *Document) Write(w io.Writer) error {
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	return e.Encode(d)
}
