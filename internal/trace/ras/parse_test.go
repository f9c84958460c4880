package ras

import (
	"os"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// parse reads an answer in either form.
func parse(text string) (*Answer, error) {
	if strings.HasPrefix(text, "{") {
		return parseJSON([]byte(text))
	}
	return parseText(text)
}

// say is RAS's text with these blocks.
func said(errors, warnings string) string {
	return "NCCL version 2.27.7 compiled with CUDA 12.9\n\nCommunicators... (0.00s)\n=============\n\nErrors\n======\n\n" + errors + "\nWarnings\n========\n\n" + warnings
}

// answered is RAS's JSON with one communicator of these ranks.
func answered(ranks, missing string) string {
	return `{"nccl_version":"2.30.7","communicators":[{"hash":"0xab","ranks":[` + ranks + `],"missing_ranks":[` + missing + `]}],"ras":{"timeouts_count":2}}`
}

func TestAnswers(t *testing.T) {
	for _, c := range []struct {
		what, text string // text: or the name of a file
		want       []string
	}{
		// What RAS of a real NCCL has said of a job with one rank that was late, or had been stopped for a moment or a minute.
		{"", "behind-2.24.3.txt", []string{"behind in 0x7f71b7e2886eb590, collective: rank 1, process 16637 on 127.0.0.1 (21 of 22)"}},
		{"", "behind-2.30.7.txt", []string{"behind in 0xe044c46bb08309d5, AllReduce: rank 1, process 16777 on 127.0.0.1 (21 of 22)"}},
		{"", "behind.json", []string{"behind in 0xe044c46bb08309d5, AllReduce: rank 1, process 16777 on 127.0.0.1 (21 of 22)"}},
		{"", "silent-2.24.3.txt", []string{"no answer: process 18983 on 127.0.0.1", "no answer in 0x2c36fd4f0daecd4e: rank 1"}},
		{"", "silent-2.30.7.txt", []string{"no answer: process 19024 on 127.0.0.1", "no answer in 0x4801c9e05ad24a70: rank 1, process 19024 on 127.0.0.1"}},
		{"", "dead-2.24.3.txt", []string{"dead: process 13822 on 127.0.0.1", "no answer in 0x1deed82b6fa9524f: rank 1"}},
		{"", "silent.json", []string{"no answer in 0xab3f3c77ed3a96db: rank 1, process 8169 on 127.0.0.1"}},

		{"nothing", said("", ""), nil},
		{"nothing, in JSON", answered(`{"rank":0,"collective_counts":{"AllReduce":5}},{"rank":1,"collective_counts":{"AllReduce":5}}`, ""), nil},
		{"no communicators", `{"nccl_version":"2.30.7","communicators":[],"ras":{}}`, nil},
		{"dead", said("DEAD\n  2 job processes are considered dead (unreachable via the RAS network)\n  Process 7 on node 10.0.0.1 managing GPU 0\n  Process 8 on node fe80::1 managing GPUs 1,2\n", ""),
			[]string{"dead: process 7 on 10.0.0.1; process 8 on fe80::1"}},
		{"dead, too many to be named", said("DEAD\n  40 job processes are considered dead (unreachable via the RAS network)\n", ""),
			[]string{"dead: some, whom it does not name"}},
		{"dead, in JSON", answered("", `{"rank":3,"host":"10.0.0.1","pid":7,"status":{"unresponsive":true,"considered_dead":true}},{"rank":4,"host":"unknown","pid":-1,"status":{"unresponsive":true}}`),
			[]string{"dead in 0xab: rank 3, process 7 on 10.0.0.1", "no answer in 0xab: rank 4"}},
		{"left", answered("", `{"rank":3,"host":"10.0.0.1","pid":7,"status":{}}`), []string{"not a member in 0xab: rank 3, process 7 on 10.0.0.1"}},
		{"left, by an older release", said("", "#0-0 (00000000000000ab) MISMATCH\n  Communicator ranks have different status\n  6 ranks have status RUNNING\n  2 ranks have status UNKNOWN\n  The unknown ranks: 3,5\n"),
			[]string{"not a member in 0xab: rank 3; rank 5"}},
		{"failed", said("#0-0 (00000000000000ab) ERROR\n  Asynchronous errors on 3 ranks\n  2 ranks reported Remote process error\n  Rank 1 -- GPU 0 managed by process 7 on node 10.0.0.1\n  Rank 2 -- [process information not found]\n  Rank 5 reported System error -- GPU 1 (NVML 3) managed by process 9 on node 10.0.0.2\n", ""),
			[]string{"failed in 0xab, Remote process error: rank 1, process 7 on 10.0.0.1; rank 2", "failed in 0xab, System error: rank 5, process 9 on 10.0.0.2"}},
		{"failed, in JSON", answered(`{"rank":0,"status":{"async_error":7}},{"rank":1,"host":"h","pid":7,"status":{"async_error":6}},{"rank":2,"status":{"init_state":99}}`, ""),
			[]string{"failed in 0xab, Remote process error: rank 1, process 7 on h", "failed in 0xab, Unexpected error: rank 2", "other state in 0xab, INIT: rank 2"}},
		{"another state", said("", "#0-0 (00000000000000ab) MISMATCH\n  Communicator ranks have different status\n  3 ranks have status RUNNING\n  Rank 2 has status ABORT -- GPU 0 managed by process 7 on node 10.0.0.1\n"),
			[]string{"other state in 0xab, ABORT: rank 2, process 7 on 10.0.0.1"}},
		{"another state, in JSON", answered(`{"rank":0},{"rank":1},{"rank":2,"status":{"destroy_flag":true}}`, ""), []string{"other state in 0xab, FINALIZE: rank 2"}},
		{"behind in two, one of which has begun none", said("", "#0-0 (00000000000000ab) MISMATCH\n  Communicator ranks have different Broadcast operation counts\n  3 ranks have launched up to operation 4\n  Rank 2 has not launched any operations -- GPU 0 managed by process 7 on node n\n\n  Communicator ranks have different AllReduce operation counts\n  6 ranks have launched up to operation 9\n  2 ranks have launched up to operation 8\n  Rank 2 -- GPU 0 managed by process 7 on node n\n  Rank 3 -- GPU 0 managed by process 8 on node n\n"),
			[]string{"behind in 0xab, Broadcast: rank 2, process 7 on n (0 of 4)", "behind in 0xab, AllReduce: rank 2, process 7 on n (8 of 9); rank 3, process 8 on n (8 of 9)"}},
		{"those ahead are the few", said("", "#0-0 (00000000000000ab) MISMATCH\n  Communicator ranks have different AllReduce operation counts\n  3 ranks have launched up to operation 8\n  Rank 0 has launched up to operation 9 -- GPU 0 managed by process 5 on node n\n"),
			[]string{"behind in 0xab, AllReduce: some, whom it does not name"}},
		{"behind, in JSON", answered(`{"rank":0,"collective_counts":{"AllReduce":5,"Reduce":1}},{"rank":1,"collective_counts":{"AllReduce":5}},{"rank":2,"collective_counts":{"AllReduce":3,"Reduce":1}}`, ""),
			[]string{"behind in 0xab, AllReduce: rank 2 (3 of 5)", "behind in 0xab, Reduce: rank 1 (0 of 1)"}},
		{"what steers a terminal", answered("", `{"rank":0,"host":"\u001b[2J","pid":3,"status":{}}`), []string{"not a member in 0xab: rank 0, process 3 on ?[2J"}},
	} {
		text := c.text
		if c.what == "" {
			b, err := os.ReadFile("testdata/" + c.text)
			if err != nil {
				t.Fatal(err)
			}
			c.what, text = c.text, string(b)
		}
		a, err := parse(text)
		if err != nil {
			t.Errorf("%s: %v", c.what, err)
			continue
		}
		var got []string
		for _, f := range a.Findings {
			got = append(got, f.Text())
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s:\n%q, want\n%q", c.what, got, c.want)
		}
	}
}

func TestNoAnswers(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"{", "not the JSON that it should be"},
		{"{}", "not RAS's"},
		{`{"ras":{},"communicators":[{"hash":"0xzz"}]}`, `a communicator whose hash is "0xzz"`},
		{`{"ras":{},"communicators":[{"hash":"0x1","ranks":[{"rank":5000000000}]}]}`, "not the JSON"},
		{"hello\n", "does not begin as RAS's does"},
		{"NCCL version 2.27.7 compiled with CUDA 12.9\nErrors\n", "ends before"},
	} {
		if a, err := parse(c.text); err == nil || !strings.Contains(err.Error(), c.want) || a != nil {
			t.Errorf("%q: %v, %v, want %q", c.text, a, err, c.want)
		}
	}
}

// Who is behind in two answers and has launched nothing between them stands.
func TestWhoStandsStill(t *testing.T) {
	first, err := parse(answered(`{"rank":0,"collective_counts":{"AllReduce":9}},{"rank":1,"collective_counts":{"AllReduce":5}},{"rank":2,"collective_counts":{"AllReduce":8,"Reduce":1}},{"rank":3,"collective_counts":{"AllReduce":8}}`, `{"rank":4}`))
	if err != nil {
		t.Fatal(err)
	}
	then, err := parse(answered(`{"rank":0,"collective_counts":{"AllReduce":12}},{"rank":1,"collective_counts":{"AllReduce":5}},{"rank":2,"collective_counts":{"AllReduce":12,"Reduce":2}},{"rank":3,"collective_counts":{"AllReduce":11,"Reduce":1}}`, `{"rank":4}`))
	if err != nil {
		t.Fatal(err)
	}
	then.stands(first)
	var got []string
	for _, f := range then.Findings {
		got = append(got, f.Text())
	}
	want := []string{"not a member in 0xab: rank 4", "behind in 0xab, AllReduce: rank 1 (5 of 12)", "behind in 0xab, Reduce: rank 0 (0 of 2); rank 1 (0 of 2)"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func FuzzAnswers(f *testing.F) {
	for _, name := range []string{"dead-2.24.3.txt", "behind-2.24.3.txt", "behind-2.30.7.txt", "behind.json", "silent-2.24.3.txt", "silent-2.30.7.txt", "silent.json"} {
		b, err := os.ReadFile("testdata/" + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(b))
	}
	f.Add(said("#0-0 (ffffffffffffffffff) ERROR\n  Rank 99999999999 reported x -- [y]\n", "#1-1 (ab) MISMATCH\n  The unknown ranks: ,,1\n"))
	f.Fuzz(func(t *testing.T, text string) {
		a, err := parse(text)
		if (a == nil) != (err != nil) {
			t.Fatalf("%v, %v", a, err)
		}
		if a == nil {
			return
		}
		a.stands(a)
		for _, l := range (&Section{Answer: a}).Lines() {
			if strings.ContainsFunc(l, unicode.IsControl) {
				t.Errorf("a line that steers a terminal: %q", l)
			}
		}
	})
}
