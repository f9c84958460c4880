package parse

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"modernc.org/cc/v4"
	"weft/gen/model"
)

// Refusal is one thing in a header that the generator will not build on.
type Refusal struct {
	Pos  model.Pos
	What string
}

func (r *Refusal) Error() string { return r.Pos.String() + ": " + r.What }

// Refusals are all that was found, in source order.
type Refusals []*Refusal

func (rs Refusals) Error() string {
	var lines []string
	for _, r := range rs {
		lines = append(lines, r.Error())
	}
	return strings.Join(lines, "\n")
}

// maxRefusals bounds a report; what follows the first few is rarely news.
const maxRefusals = 20

func position(n cc.Node) model.Pos {
	p := n.Position()
	return model.Pos{File: p.Filename, Line: p.Line, Col: p.Column}
}

// refuse abandons the declaration at hand.
func refuse(at cc.Node, format string, args ...any) {
	panic(&Refusal{Pos: position(at), What: fmt.Sprintf(format, args...)})
}

var ccMessage = regexp.MustCompile(`^([^\s:]+):(\d+):(\d+): (.*)$`)

// ccOrigin is where cc's own source gave up, which it says in tests.
var ccOrigin = regexp.MustCompile(` \(\w+\.go:\d+:.*\)$`)

// fromCC turns the parser's own errors into refusals.
func fromCC(err error, o Options, over *overlay) Refusals {
	var rs Refusals
	for _, line := range strings.Split(err.Error(), "\n") {
		r := &Refusal{What: strings.TrimSuffix(strings.TrimSpace(line), ":")}
		if m := ccMessage.FindStringSubmatch(line); m != nil {
			r.Pos.File = m[1]
			r.Pos.Line, _ = strconv.Atoi(m[2])
			r.Pos.Col, _ = strconv.Atoi(m[3])
			r.What = strings.TrimSuffix(ccOrigin.ReplaceAllString(strings.TrimSpace(m[4]), ""), ":")
		}
		if end := explain(r, o, over); len(rs) > 0 && (end || rs[len(rs)-1].Pos == r.Pos) {
			continue // a consequence of what was said
		}
		if rs = append(rs, r); len(rs) == maxRefusals {
			break
		}
	}
	return rs
}

var (
	lastWord  = regexp.MustCompile(`\w+[ \t]*$`)
	firstWord = regexp.MustCompile(`^\w+`)
)

// explain says what a message of the C parser means for who wrote the header,
// and gives it a place where the parser has none. It reports whether the
// parser was at the end of the input.
func explain(r *Refusal, o Options, over *overlay) (end bool) {
	if (r.Pos.Line == 0 || r.Pos.File == tailSrc) && len(o.Headers) > 0 { // the end of the last header
		r.Pos.File = o.Headers[len(o.Headers)-1]
		r.Pos.Line, r.Pos.Col = 1+strings.Count(over.readAll(r.Pos.File), "\n"), 1
		r.What = strings.TrimPrefix(r.What, "-: ") + ": is a ; or a } missing at the end?"
		return true
	}
	if !strings.HasPrefix(r.What, "unexpected ") {
		return false
	}
	text := over.line(r.Pos)
	before := text[:min(len(text), max(r.Pos.Col-1, 0))]
	switch word := strings.TrimSpace(lastWord.FindString(before)); {
	case strings.TrimSpace(before) == "":
		r.What += ": is a ; missing before this line?"
	case word != "" && !keywords[word]:
		r.What = fmt.Sprintf("%s is not declared (%s)", word, r.What)
	}
	return false
}

// keywords are the words that may precede a mistake without being one.
var keywords = map[string]bool{}

func init() {
	for _, k := range strings.Fields("void char short int long float double signed unsigned _Bool bool struct union enum const typedef extern static inline") {
		keywords[k] = true
	}
}

// line returns the text of one line of a header.
func (o *overlay) line(p model.Pos) string {
	lines := strings.Split(o.readAll(p.File), "\n")
	if p.Line < 1 || p.Line > len(lines) {
		return ""
	}
	return lines[p.Line-1]
}
