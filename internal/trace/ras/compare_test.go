package ras_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"weft/internal/trace/model"
	"weft/internal/trace/ras"
	"weft/internal/trace/rectest"
)

// The files are of four ranks, processes 100 to 103 on node0 and node1, of communicator 0xc0ffee.
func TestCompare(t *testing.T) {
	job := rectest.Job{Ranks: 4, PerMachine: 2, Iterations: 2, Version: 6}
	m := model.New(rectest.Read(t, job.Files()...))
	rank := func(n int) *model.Process { return m.Communicators[0].Comms[n].Process }
	behind := func(ranks ...int32) ras.Finding {
		f := ras.Finding{Kind: ras.Behind, Communicator: 0xc0ffee, Why: "AllReduce", Most: 5}
		for _, r := range ranks {
			f.Who = append(f.Who, ras.Who{Rank: r})
		}
		return f
	}
	for _, c := range []struct {
		what    string
		files   ras.Files
		ids     []uint64
		partly  bool
		found   []ras.Finding
		verdict string
		why     string
		wrong   bool
	}{
		{"both see nothing", ras.Files{}, []uint64{0xc0ffee}, false, nil, ras.Agrees, "nobody is missing", false},
		{"both name one", ras.Files{Accused: []*model.Process{rank(1)}}, []uint64{0xc0ffee}, false, []ras.Finding{behind(1)}, ras.Agrees, "it names rank 1 (node0:101) too", true},
		{"RAS names another as well", ras.Files{Accused: []*model.Process{rank(1)}}, []uint64{0xc0ffee}, false, []ras.Finding{behind(1, 3)}, ras.KnowsMore, "rank 1 (node0:101) too, and rank 3 (node1:103)", true},
		{"RAS alone names somebody", ras.Files{}, []uint64{0xc0ffee}, false, []ras.Finding{behind(2)}, ras.KnowsMore, "it names rank 2 (node1:102), of whom", true},
		{"RAS names another", ras.Files{Accused: []*model.Process{rank(1)}}, []uint64{0xc0ffee}, false, []ras.Finding{behind(2)}, ras.Differs, "it names rank 2 (node1:102), and not rank 1 (node0:101)", true},
		{"RAS names nobody", ras.Files{Accused: []*model.Process{rank(1)}}, []uint64{0xc0ffee}, false, nil, ras.Differs, "rank 1 (node0:101) neither", false},
		{"RAS does not say whom", ras.Files{}, []uint64{0xc0ffee}, false, []ras.Finding{behind()}, ras.KnowsMore, "something is wrong, but it names nobody whom the files know", true},
		{"RAS does not say whom, the files do", ras.Files{Accused: []*model.Process{rank(1)}}, []uint64{0xc0ffee}, false, []ras.Finding{behind()}, ras.Differs, "names nobody whom the files know: not rank 1 (node0:101)", true},
		{"a rank of which the files do not say whose it is", ras.Files{Accused: []*model.Process{rank(1)}}, nil, true, []ras.Finding{{Kind: ras.Silent, Who: []ras.Who{{Rank: -1, PID: 101}}}, {Kind: ras.Silent, Communicator: 9, Who: []ras.Who{{Rank: 1}}}}, ras.Agrees, "it names rank 1 (node0:101) too", true},
		{"by the number of the process", ras.Files{Accused: []*model.Process{rank(3)}}, nil, true, []ras.Finding{{Kind: ras.Dead, Who: []ras.Who{{Rank: -1, PID: 103, Host: "10.0.0.1"}}}}, ras.Agrees, "of which job it is, it does not say", true},
		{"a process without a file", ras.Files{}, nil, true, []ras.Finding{{Kind: ras.Dead, Who: []ras.Who{{Rank: -1, PID: 9, Host: "10.0.0.1"}}}}, ras.KnowsMore, "process 9 on 10.0.0.1", true},
		{"a slow link", ras.Files{Else: true, Times: true}, []uint64{0xc0ffee}, false, nil, ras.Nothing, "does not look at times", false},
		{"a straggler", ras.Files{Accused: []*model.Process{rank(1)}, Times: true}, []uint64{0xc0ffee}, false, nil, ras.Nothing, "does not look at times", false},
		{"a way", ras.Files{Else: true}, []uint64{0xc0ffee}, false, nil, ras.Nothing, "processes only", false},
		{"another job", ras.Files{Accused: []*model.Process{rank(1)}}, []uint64{7}, false, []ras.Finding{behind(1)}, ras.Other, "none of the communicators", false},
	} {
		s := ras.Compare(&ras.Answer{Address: "h:1", Version: "2.30.7", Communicators: c.ids, Partly: c.partly, Findings: c.found}, m, c.files)
		if s.Verdict != c.verdict || !strings.Contains(s.Why, c.why) || s.Wrong() != c.wrong {
			t.Errorf("%s: %s: %s (wrong %t), want %s: %s (%t)", c.what, s.Verdict, s.Why, s.Wrong(), c.verdict, c.why, c.wrong)
		}
	}
}

func TestSection(t *testing.T) {
	found := make([]ras.Finding, 20)
	for i := range found {
		found[i] = ras.Finding{Kind: ras.Dead, Communicator: uint64(i), Who: make([]ras.Who, 12)}
	}
	for _, c := range []struct {
		what string
		s    *ras.Section
		want []string
		most int // lines
	}{
		{"no answer", ras.Unanswered(errors.New("nobody listens")), []string{"NCCL's RAS has not answered: nobody listens\n"}, 1},
		{"much", &ras.Section{Answer: &ras.Answer{Address: "h:1", Version: "2.30.7", Findings: found}, Verdict: ras.Agrees, Why: "so"},
			[]string{"NCCL's RAS (h:1, NCCL 2.30.7) agrees: so\n  dead: rank 0; rank 0;", "; 4 more\n", "  4 more, which --json has\n"}, 18},
	} {
		var b bytes.Buffer
		if err := c.s.Text(&b); err != nil {
			t.Fatal(err)
		}
		for _, w := range c.want {
			if !strings.Contains(b.String(), w) {
				t.Errorf("%s: no %q in %q", c.what, w, b.String())
			}
		}
		if n := strings.Count(b.String(), "\n"); n != c.most {
			t.Errorf("%s: %d lines", c.what, n)
		}
	}
	var none *ras.Section
	if none.Wrong() || !ras.Unanswered(errors.New("x")).Wrong() {
		t.Error("wrong is where RAS was asked and has not answered, and there alone")
	}
}
