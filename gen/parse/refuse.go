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

// fromCC turns the parser's own errors into refusals.
func fromCC(err error) Refusals {
	var rs Refusals
	for _, line := range strings.Split(err.Error(), "\n") {
		r := &Refusal{What: strings.TrimSuffix(strings.TrimSpace(line), ":")}
		if m := ccMessage.FindStringSubmatch(line); m != nil {
			r.Pos.File = m[1]
			r.Pos.Line, _ = strconv.Atoi(m[2])
			r.Pos.Col, _ = strconv.Atoi(m[3])
			r.What = strings.TrimSuffix(strings.TrimSpace(m[4]), ":")
			// cc says where in its own source it gave up: of no use to the reader.
			if i := strings.Index(r.What, " ("); i > 0 && strings.HasSuffix(r.What, ")") && strings.Contains(r.What[i:], ".go:") {
				r.What = r.What[:i]
			}
		}
		if rs = append(rs, r); len(rs) == maxRefusals {
			break
		}
	}
	return rs
}
