package page_test

import (
	"strings"
	"testing"
	"unicode"

	"weft/internal/trace/model"
	"weft/internal/trace/ras"
	"weft/internal/trace/rectest"
	"weft/internal/trace/summary"
	"weft/transport/record/format"
)

// named is the page of a job in which every text that a file can bring is this one.
func named(t *testing.T, text string) *node {
	t.Helper()
	var files []*rectest.File
	for r := range 2 {
		f := rectest.New(2, uint64(r+1), text, byte(r+1), 0, 0)
		a := f.Thread(1, text)
		a.Put(format.Record{Kind: format.Comm, Comm: 1, Rank: int32(r), Time: 1, A: 7, B: f.Name(text) | 2<<32, C: 1 | 6<<32})
		sends := r == 0
		a.Link(2, 0x10, sends, 2, 0x100, text, text, 7)
		for i := range uint64(4) {
			at := 1000*(i+1) + uint64(r)
			coll := a.Start(format.Coll, at, format.Record{Comm: 1, Rank: int32(r), A: i, B: 1000, More: [7]uint64{
				f.Name(text) | f.Name(text)<<32, f.Name(text) | f.Name(text)<<32,
			}})
			a.Stop(coll, at+1)
			op := a.Start(format.ProxyOp, at+5, format.Record{Comm: 1, Rank: int32(r), Parent: coll, A: uint64(r + 1)})
			m := a.Message(at+6, 0x10, sends, i+1, 100, 5)
			a.MessageEnd(at+50+100*uint64(r), m, i+1, 100, 0)
			a.Stop(op, at+200)
		}
		files = append(files, f)
	}
	read := rectest.Read(t, files...)
	for _, f := range read {
		f.Path = text
		f.Notes = append(f.Notes, text)
	}
	r := summary.New(model.New(read))
	r.RAS = &ras.Section{Verdict: ras.KnowsMore, Why: text, Answer: &ras.Answer{Address: text, Version: text, Findings: []ras.Finding{
		{Kind: ras.Failed, Communicator: 7, Why: text, Who: []ras.Who{{Rank: 1, PID: 2, Host: text}}},
	}}}
	return check(t, write(t, r))
}

var hostile = []string{
	`<script>alert(1)</script>`,
	`</title></svg><img src=x onerror=alert(1)>`,
	`"><svg onload=alert(1)>`,
	`' onmouseover='alert(1)`,
	`</style><link rel=stylesheet href=//x>`,
	`<!-- ]]> <![CDATA[ -->`,
	`{{.Style}} {{template "basis" .}}`,
	`javascript:alert(1)`,
	`&lt;b&gt; &amp;lt;`,
	"\u202eelif\u202c",
}

// What a file says is text, wherever it stands.
func TestHostileTexts(t *testing.T) {
	for _, text := range hostile {
		root := named(t, text)
		shown := strings.Map(func(r rune) rune { // as files are read
			if !unicode.IsPrint(r) {
				return '?'
			}
			return r
		}, text)
		places := map[string]bool{}
		root.walk(func(n *node) {
			for _, c := range n.children {
				if strings.Contains(c.text, shown) {
					places[n.name] = true
				}
			}
		})
		for _, in := range []string{"title", "desc", "h3", "p", "th", "td", "li"} {
			if !places[in] {
				t.Errorf("%q is not in a <%s> as it was", text, in)
			}
		}
	}
}

func FuzzPage(f *testing.F) {
	for _, text := range hostile {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		// A path comes from the command line, and XML has no control characters.
		text = strings.Map(func(r rune) rune {
			if !unicode.IsPrint(r) {
				return '?'
			}
			return r
		}, text)
		named(t, text)
	})
}
