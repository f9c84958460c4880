package ras

import (
	"errors"
	"regexp"
	"strconv"
	"strings"

	"weft/internal/owner"
)

// RAS's text for people, as far as it says what is wrong: blocks of lines under
// "Errors" and "Warnings", each with a head.
var (
	versionLine = regexp.MustCompile(`^NCCL version (\S+)`)
	headLine    = regexp.MustCompile(`^(?:#\d+-\d+ \(([0-9a-f]+)\) )?(INCOMPLETE|DEAD|ERROR|MISMATCH|TIMEOUT)$`)
	rankLine    = regexp.MustCompile(`^  Rank (\d+)(?: (.*?))??(?: -- (?:GPU .* managed by process (\d+) on node (\S+)|\[.*\]))?$`)
	processLine = regexp.MustCompile(`^  Process (\d+) on node (\S+) managing`)
	listLine    = regexp.MustCompile(`^  The (?:missing|unknown) ranks?: ([0-9,]+)`)
	timeoutLine = regexp.MustCompile(`^  Encountered (\d+) communication timeout`)
	countsLine  = regexp.MustCompile(`^  Communicator ranks have different (\S+) operation counts$`)
	manyLine    = regexp.MustCompile(`^  \d+ ranks (.*)$`)
	launched    = regexp.MustCompile(`^ha(?:s|ve) launched up to operation (\d+)$`)
	inState     = regexp.MustCompile(`^ha(?:s|ve) status (\S+)$`)
	reported    = regexp.MustCompile(`^reported (.+)$`)
)

// reader is where a text has been read to.
type reader struct {
	a    *Answer
	head string // of the block
	id   uint64 // of the communicator that it is about
	fn   string // whose counts differ; "": the ranks' states do
	many string // what the ranks that follow have in common
	said []claim
}

// claim is what RAS says of a number of ranks, some of which it names.
type claim struct {
	what string
	who  []Who
}

// parseText reads the answer of a release that has no JSON.
func parseText(text string) (*Answer, error) {
	r := &reader{a: &Answer{Communicators: []uint64{}, Findings: []Finding{}, Partly: true}}
	whole := false
	for text := range strings.Lines(text) {
		l := owner.Plain([]byte(strings.TrimRight(text, "\r\n")))
		if m := versionLine.FindStringSubmatch(l); m != nil && r.a.Version == "" {
			r.a.Version = m[1]
		}
		whole = whole || l == "Warnings"
		if m := headLine.FindStringSubmatch(l); m != nil {
			r.close()
			r.head, r.id, r.fn = m[2], 0, ""
			if m[1] != "" {
				r.id, _ = strconv.ParseUint(m[1], 16, 64) // too long a number is a great one
				r.a.Communicators = append(r.a.Communicators, r.id)
			}
			continue
		}
		r.line(l)
	}
	r.close()
	if r.a.Version == "" {
		return nil, errors.New("its answer does not begin as RAS's does, with NCCL's version")
	}
	if !whole {
		return nil, errors.New("its answer ends before it has said what is wrong")
	}
	return r.a, nil
}

func (r *reader) line(l string) {
	if m := countsLine.FindStringSubmatch(l); m != nil {
		r.close()
		r.fn = m[1]
		return
	}
	if m := timeoutLine.FindStringSubmatch(l); m != nil && r.head == "TIMEOUT" {
		r.a.Timeouts, _ = strconv.Atoi(m[1])
	}
	if m := manyLine.FindStringSubmatch(l); m != nil {
		r.many = m[1]
		r.said = append(r.said, claim{what: m[1]})
	}
	if m := processLine.FindStringSubmatch(l); m != nil {
		r.say("", Who{Rank: -1, Host: m[2], PID: number(m[1])})
	}
	if m := listLine.FindStringSubmatch(l); m != nil {
		for _, n := range strings.Split(m[1], ",") {
			if n != "" {
				r.say("has status UNKNOWN", Who{Rank: int32(number(n))})
			}
		}
	}
	if m := rankLine.FindStringSubmatch(l); m != nil {
		what := m[2]
		if what == "" {
			what = r.many
		}
		r.say(what, Who{Rank: int32(number(m[1])), PID: number(m[3]), Host: m[4]})
	}
}

// number is one that has 31 bits at most; 0: it is none, or larger.
func number(digits string) int64 {
	n, err := strconv.ParseInt(digits, 10, 32)
	if err != nil {
		return 0
	}
	return n
}

func (r *reader) say(what string, who Who) {
	if n := len(r.said); n > 0 && r.said[n-1].what == what {
		r.said[n-1].who = append(r.said[n-1].who, who)
		return
	}
	r.said = append(r.said, claim{what, []Who{who}})
}

// close makes findings of what was said since the last head.
func (r *reader) close() {
	said := r.said
	r.said, r.many = nil, ""
	switch r.head {
	case "INCOMPLETE", "DEAD":
		kind := map[string]string{"INCOMPLETE": Silent, "DEAD": Dead}[r.head]
		r.a.add(Finding{Kind: kind, Communicator: r.id})
		for _, c := range said {
			r.a.add(Finding{Kind: kind, Communicator: r.id}, c.who...)
		}
	case "ERROR":
		for _, c := range said {
			if m := reported.FindStringSubmatch(c.what); m != nil {
				r.a.add(Finding{Kind: Failed, Communicator: r.id, Why: m[1]}, c.who...)
			}
		}
	case "MISMATCH":
		if r.fn != "" {
			r.counts(said)
		} else {
			r.states(said)
		}
	}
}

// counts names those that have launched less than others. RAS names the few.
func (r *reader) counts(said []claim) {
	most, counts := uint64(0), make([]uint64, len(said))
	for i, c := range said {
		if m := launched.FindStringSubmatch(c.what); m != nil {
			counts[i], _ = strconv.ParseUint(m[1], 10, 64)
		}
		most = max(most, counts[i])
	}
	for i, c := range said {
		if counts[i] == most {
			continue
		}
		for j := range c.who {
			c.who[j].Launched = counts[i]
		}
		r.a.add(Finding{Kind: Behind, Communicator: r.id, Why: r.fn, Most: most}, c.who...)
	}
}

// states names those that are in another state than most: what is said first is of most.
func (r *reader) states(said []claim) {
	for i, c := range said {
		m := inState.FindStringSubmatch(c.what)
		switch {
		case m == nil:
		case m[1] == "NOCOMM" || m[1] == "UNKNOWN":
			r.a.add(Finding{Kind: Absent, Communicator: r.id}, c.who...)
		case i > 0:
			r.a.add(Finding{Kind: State, Communicator: r.id, Why: m[1]}, c.who...)
		}
	}
}
