package rules

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestParse(t *testing.T) {
	for _, c := range []struct {
		line string
		want []*Rule
	}{
		{"", nil},
		{"  # a comment", nil},
		{"null net v7.. irecvConsumed -- nothing to hear", []*Rule{{Verb: "null", Family: "net", Lo: 7, Hi: Open, Slot: "irecvConsumed", Reason: "nothing to hear"}}},
		{"slow net init listen", []*Rule{{Verb: "slow", Family: "net", Hi: Open, Slot: "init"}, {Verb: "slow", Family: "net", Hi: Open, Slot: "listen"}}},
		{"retitle tuner v2..v4 destroy finalize", []*Rule{{Verb: "retitle", Family: "tuner", Lo: 2, Hi: 4, Slot: "destroy", Words: []string{"finalize"}}}},
		{"rename net v2..v4 test.size sizes", []*Rule{{Verb: "rename", Family: "net", Lo: 2, Hi: 4, Slot: "test", Param: "size", Words: []string{"sizes"}}}},
		{"before net v8 irecv *request = NULL;", []*Rule{{Verb: "before", Family: "net", Lo: 8, Hi: 8, Slot: "irecv", C: "*request = NULL;"}}},
		{"extra net init int abi = $N", []*Rule{{Verb: "extra", Family: "net", Hi: Open, Slot: "init", Words: []string{"int", "abi"}, C: "$N"}}},
		{"opaque net comm regMr.data", []*Rule{{Verb: "opaque", Family: "net", Hi: Open, Param: "comm"}, {Verb: "opaque", Family: "net", Hi: Open, Slot: "regMr", Param: "data"}}},
		{"vector net irecv n 8 data sizes", []*Rule{{Verb: "vector", Family: "net", Hi: Open, Slot: "irecv", Words: []string{"n", "8", "data", "sizes"}}}},
		{"convert net v2 regMr.type f", []*Rule{{Verb: "convert", Family: "net", Lo: 2, Hi: 2, Slot: "regMr", Param: "type", Words: []string{"f"}}}},
		{"convert ncclProps v1 coll.func f", []*Rule{{Verb: "convert", Stem: "ncclProps", Lo: 1, Hi: 1, Param: "coll.func", Words: []string{"f"}}}},
		{"declare int  f(void)", []*Rule{{Verb: "declare", Hi: Open, C: "int  f(void)"}}},
	} {
		got, err := Parse("f.rules", []byte(c.line))
		if err != nil {
			t.Errorf("%q: %v", c.line, err)
			continue
		}
		for _, r := range c.want {
			r.File, r.Line = "f.rules", 1
		}
		if diff := cmp.Diff(c.want, got, cmpopts.IgnoreUnexported(Rule{})); diff != "" {
			t.Errorf("%q (-want +got):\n%s", c.line, diff)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"forget net", `f.rules:1: unknown directive "forget"; there are `},
		{"null net all flush", `f.rules:1: null: no reason given after " -- "; the form is: null family versions slot !`},
		{"null nut all flush -- x", `"nut" is not a family`},
		{"null net 4 flush -- x", `"4" is not a version: write all, v4, v2..v4 or v9..`},
		{"null net v4..v2 flush -- x", `range of versions "v4..v2" ends before it begins`},
		{"null net v0 flush -- x", `"v0" is not a version`},
		{"rename net v2 test.size", "rename: word missing"},
		{"rename net v2 test.size sizes more", `"more" is too much`},
		{"extra net init int abi 3", `extra: "=" expected`},
		{"extra net init int abi =", "extra: C text expected"},
		{"slow net", "slow: slot missing"},
		{"vector net irecv", "vector: words expected"},
		{"lose ncclProps v1 op", "no reason given"},
	} {
		if _, err := Parse("f.rules", []byte(c.line)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: got %v, want %q", c.line, err, c.want)
		}
	}
}

func TestUnused(t *testing.T) {
	set, err := LoadFS(fstest.MapFS{
		"b.rules": {Data: []byte("slow net one two\n")},
		"a.rules": {Data: []byte("# first\nrename net v2..v4 test.size sizes\n")},
	}, "gen/rules")
	if err != nil {
		t.Fatal(err)
	}
	if set.Slot("slow", "net", 12, "two") == nil {
		t.Fatal("slow net two is not found")
	}
	if set.Param("rename", "net", 5, "test", "size") != nil {
		t.Fatal("a rule for v2..v4 covers v5")
	}
	var got []string
	for _, err := range set.Unused() {
		got = append(got, err.Error())
	}
	want := []string{
		`gen/rules/a.rules:2: rule "rename" matches nothing: no header has net v2..v4 test.size sizes`,
		`gen/rules/b.rules:1: rule "slow" matches nothing: no header has net one`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// FuzzParse: whatever stands in a file of rules, the parser ends, and a line
// gives either rules or an error, never both.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"null net v7.. x -- y", "slow net a b", "extra net init int abi = $N", "convert", "declare", "vector net x 1", "\x00", "a -- b -- c"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		s = strings.ReplaceAll(s, "\n", " ")
		rs, err := Parse("f.rules", []byte(s))
		if err != nil && len(rs) > 0 {
			t.Errorf("%q: %d rules and %v", s, len(rs), err)
		}
	})
}
