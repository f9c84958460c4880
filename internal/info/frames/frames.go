// Package frames tells what stands in bytes that weft's processes exchange: the connection handle that NCCL carries from rank to
// rank, and the frames of a handshake and of a control connection. Whose bytes they are is not known: nothing in them is believed
// before transport/wire has read it.
package frames

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"weft/transport/wire"
)

// Schema is the version of the report's form.
const Schema = "weft.wire/1"

// Report is what was found, from the first byte to the last.
type Report struct {
	Schema string `json:"schema" doc:"weft.wire/1; a new number where a field goes or changes its meaning"`
	Bytes  int    `json:"bytes" doc:"how many there are"`
	Parts  []Part `json:"parts" doc:"one after the other, without gaps"`
}

// Part is a piece of the bytes.
type Part struct {
	Offset int     `json:"offset" doc:"of its first byte"`
	Bytes  int     `json:"bytes" doc:"how many it has"`
	What   string  `json:"what" doc:"handle, frame 1 to 3, a message by its name, padding, or what else it may be"`
	Fields []Field `json:"fields,omitempty" doc:"in their order on the wire, as transport/wire names them"`
	Error  string  `json:"error,omitempty" doc:"why it cannot be read"`
}

// Field is a value of a part.
type Field struct {
	Name  string `json:"name" doc:"a field's, of structs by path"`
	Value string `json:"value" doc:"secrets are not shown"`
}

// Wrong reports bytes that could not be read.
func (r *Report) Wrong() bool {
	return slices.ContainsFunc(r.Parts, func(p Part) bool { return p.Error != "" })
}

// Decode reads bytes that begin anywhere in what one side says.
func Decode(b []byte) *Report {
	r := &Report{Schema: Schema, Bytes: len(b), Parts: []Part{}}
	last := ""
	for at := 0; at < len(b); {
		p := next(b[at:], at == 0, last)
		p.Offset = at
		r.Parts = append(r.Parts, p)
		at += p.Bytes
		last = p.What
	}
	return r
}

var (
	handleMagic = []byte("weft")
	frame1Magic = []byte("wft1")
)

const (
	handleName = "handle"
	frame1Name = "frame 1"
	dataName   = "data of the connection, or nothing of weft's"
)

// next is the first part of b, which is not empty.
func next(b []byte, first bool, last string) Part {
	switch {
	case bytes.HasPrefix(b, handleMagic):
		return handle(b)
	case bytes.HasPrefix(b, frame1Magic):
		return fixed(frame1Name, b, wire.Frame1Size, func(b []byte) (any, error) { return wire.ParseFrame1(b) })
	case last == handleName && len(bytes.Trim(b, "\x00")) == 0:
		return Part{Bytes: len(b), What: "padding"}
	case last == wire.KindGo.String():
		return Part{Bytes: len(b), What: dataName}
	case begins(b):
		return message(b)
	case last == frame1Name || last == wire.KindStream.String() || (first || last == wire.KindHello.String()) && (len(b) == wire.Frame3Size || len(b) > wire.Frame3Size && begins(b[wire.Frame3Size:])):
		return fixed("frame 3", b, wire.Frame3Size, func(b []byte) (any, error) { return wire.ParseFrame3(b) })
	case first && (len(b) == wire.Frame2Size || len(b) > wire.Frame2Size && begins(b[wire.Frame2Size:])):
		return fixed("frame 2", b, wire.Frame2Size, func(b []byte) (any, error) { return wire.ParseFrame2(b) })
	case first:
		if at := somewhere(b); at > 0 {
			return Part{Bytes: at, What: "what stands before"}
		}
		return Part{Bytes: len(b), What: "unknown", Error: fmt.Sprintf("no handle and no frame begins here: the first bytes are % x", b[:min(len(b), 8)])}
	}
	return Part{Bytes: len(b), What: dataName}
}

// somewhere is where a handle or a first frame begins; -1: nowhere.
func somewhere(b []byte) int {
	at := -1
	for _, magic := range [][]byte{handleMagic, frame1Magic} {
		if i := bytes.Index(b, magic); i >= 0 && (at < 0 || i < at) {
			at = i
		}
	}
	return at
}

// begins reports the header of a message.
func begins(b []byte) bool {
	if _, err := wire.FrameLength(b); err != nil {
		return false
	}
	k := wire.KindOf(b)
	return parsers[k] != nil && (b[3] == wire.Version || k == wire.KindHello)
}

func handle(b []byte) Part {
	h, err := wire.ParseHandle(b[:min(len(b), wire.HandleMax)])
	if err != nil {
		what := handleName
		if errors.Is(err, wire.ErrVersion) {
			what = "handle of another version of weft"
		}
		return Part{Bytes: len(b), What: what, Error: err.Error()}
	}
	return Part{Bytes: len(h.Append(nil)), What: handleName, Fields: append([]Field{{"Version", fmt.Sprint(wire.Version)}}, fields(h)...)}
}

// fixed reads what has always the same size.
func fixed(what string, b []byte, size int, parse func([]byte) (any, error)) Part {
	if len(b) < size {
		return cut(what, b, size)
	}
	v, err := parse(b[:size])
	if err != nil {
		return Part{Bytes: size, What: what, Error: err.Error()}
	}
	return Part{Bytes: size, What: what, Fields: fields(v)}
}

func cut(what string, b []byte, size int) Part {
	return Part{Bytes: len(b), What: what, Error: fmt.Sprintf("it is cut: %d of %d bytes are here", len(b), size)}
}

// message reads one whose header is good.
func message(b []byte) Part {
	size, _ := wire.FrameLength(b) // begins has looked
	k := wire.KindOf(b)
	if size > len(b) {
		return cut(k.String(), b, size)
	}
	v, err := parsers[k](b[:size])
	if err != nil {
		return Part{Bytes: size, What: k.String(), Error: err.Error()}
	}
	return Part{Bytes: size, What: k.String(), Fields: append([]Field{{"Version", fmt.Sprint(b[3])}}, fields(v)...)}
}
