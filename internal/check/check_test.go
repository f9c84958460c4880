package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"weft/internal/skips"
)

// Whoever waits for a step hears which tests have not ended.
func TestWhatIsUnderWay(t *testing.T) {
	g := &goTest{out: &bytes.Buffer{}}
	g.Write([]byte(`{"Action":"run","Package":"weft/p","Test":"TestA"}
{"Action":"run","Package":"weft/p","Test":"TestA/x"}
{"Action":"run","Package":"weft/p","Test":"TestB"}
{"Action":"pass","Package":"weft/p","Test":"TestB"}
`))
	if line := progress("tests", 20*time.Second, g.busy()); line != "... tests, 20s: p TestA/x" {
		t.Errorf("%q", line)
	}
	if line := progress("lint", time.Minute, (&plain{}).busy()); line != "... lint, 1m0s" {
		t.Errorf("%q", line)
	}
}

func TestGoTestCountsLeaves(t *testing.T) {
	for _, c := range []struct {
		name, events string
		want         result
		says         string
	}{
		{"one passes", `
{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"pass","Package":"p","Test":"TestA"}
{"Action":"pass","Package":"p"}`, result{Passed: 1}, "pass p: 1 passed, 0 failed"},
		{"subtests stand for their parent", `
{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"run","Package":"p","Test":"TestA/x"}
{"Action":"run","Package":"p","Test":"TestA/y"}
{"Action":"output","Package":"p","Test":"TestA/y","Output":"wrong answer\n"}
{"Action":"pass","Package":"p","Test":"TestA/x"}
{"Action":"fail","Package":"p","Test":"TestA/y"}
{"Action":"fail","Package":"p","Test":"TestA"}
{"Action":"fail","Package":"p"}`, result{Passed: 1, Failed: 1}, "wrong answer"},
		{"a parent that fails by itself", `
{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"run","Package":"p","Test":"TestA/x"}
{"Action":"pass","Package":"p","Test":"TestA/x"}
{"Action":"fail","Package":"p","Test":"TestA"}
{"Action":"fail","Package":"p"}`, result{Passed: 1, Failed: 1}, ""},
		{"a skip", `
{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestA","Output":"needs root\n"}
{"Action":"skip","Package":"p","Test":"TestA"}
{"Action":"pass","Package":"p"}`, result{Skipped: 1}, "needs root"},
		{"a skip that is not listed", `
{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestA","Output":"not today\n"}
{"Action":"skip","Package":"p","Test":"TestA"}
{"Action":"pass","Package":"p"}`, result{Failed: 1}, "TestA was skipped"},
		{"a subtest's skip that is not listed", `
{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"run","Package":"p","Test":"TestA/x"}
{"Action":"skip","Package":"p","Test":"TestA/x"}
{"Action":"pass","Package":"p","Test":"TestA"}
{"Action":"pass","Package":"p"}`, result{Failed: 1}, "TestA/x was skipped"},
		{"a package that does not build", `
{"ImportPath":"p","Action":"build-output","Output":"x.go:1: syntax error\n"}
{"ImportPath":"p","Action":"build-fail"}
{"Action":"start","Package":"p"}
{"Action":"fail","Package":"p","FailedBuild":"p"}`, result{Failed: 1}, "syntax error"},
		{"a crash", `
{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestA","Output":"SIGSEGV\n"}
{"Action":"fail","Package":"p"}`, result{Failed: 1}, "TestA did not end"},
		{"killed", `
{"Action":"start","Package":"p"}
{"Action":"run","Package":"p","Test":"TestA"}`, result{Failed: 1}, "TestA did not end"},
		{"no test files", `
{"Action":"start","Package":"p"}
{"Action":"skip","Package":"p"}`, result{}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out bytes.Buffer
			g := &goTest{out: &out, skips: []skips.Skip{{Package: "p", Test: "TestA", Reason: "needs root"}}}
			g.Write([]byte(strings.TrimPrefix(c.events, "\n") + "\n"))
			if diff := cmp.Diff(c.want, g.done()); diff != "" {
				t.Error(diff)
			}
			if !strings.Contains(out.String(), c.says) {
				t.Errorf("said %q, want %q in it", out.String(), c.says)
			}
		})
	}
}

func TestTapCounts(t *testing.T) {
	var out bytes.Buffer
	c := &tap{out: &out}
	c.Write([]byte("TAP version 14\n1..4\nok 1 - a\nnot ok 2 - b\n  # why\nok 3 - c # SKIP none here\nok 4"))
	c.Write([]byte(" - d\n"))
	if diff := cmp.Diff(result{Passed: 2, Failed: 1, Skipped: 1}, c.done()); diff != "" {
		t.Error(diff)
	}
	if s := out.String(); strings.Contains(s, "ok 1") || !strings.Contains(s, "# why") {
		t.Errorf("printed %q", s)
	}
}

func TestStepsAndSummary(t *testing.T) {
	file := filepath.Join(t.TempDir(), "results")
	for _, c := range []struct {
		kind   string
		limit  time.Duration
		args   []string
		failed int
	}{
		{"cmd", time.Minute, []string{"true"}, 0},
		{"cmd", time.Minute, []string{"false"}, 1},
		{"cmd", time.Minute, []string{"/nonexistent"}, 1},
		{"cmd", 10 * time.Millisecond, []string{"sleep", "60"}, 1},
		{"tap", time.Minute, []string{"echo", "ok 1"}, 0},
		{"tap", time.Minute, []string{"true"}, 1}, // nothing was tested
		{"tap", time.Minute, []string{"sh", "-c", "echo ok 1; exit 3"}, 1},
	} {
		r := step("step", c.kind, c.limit, c.args)
		if r.Failed != c.failed {
			t.Errorf("%s %q: %d failed, want %d", c.kind, c.args, r.Failed, c.failed)
		}
		if err := r.append(file); err != nil {
			t.Fatal(err)
		}
	}
	total, err := sum(file, 1)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Split(total.table(), "\n")
	if last := text[len(text)-1]; last != "3 passed, 5 failed" {
		t.Errorf("the last line is %q", last)
	}
}

func TestSummaryKnowsWhatWasNotRun(t *testing.T) {
	file := filepath.Join(t.TempDir(), "results")
	for _, c := range []struct {
		status int
		last   string
	}{{0, "0 passed, 0 failed"}, {2, "0 passed, 1 failed"}} {
		total, err := sum(file, c.status)
		if err != nil {
			t.Fatal(err)
		}
		text := strings.Split(total.table(), "\n")
		if last := text[len(text)-1]; last != c.last {
			t.Errorf("status %d: the last line is %q, want %q", c.status, last, c.last)
		}
	}
}
