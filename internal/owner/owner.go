// Package owner tells whose a file is that a process of weft has left, by its first
// page, and how that process is.
package owner

import (
	"bytes"
	"encoding/binary"
	"strings"
	"time"
	"unicode"

	"weft/transport/record/format"
)

// Owner is what a file says of its process.
type Owner struct {
	PID     uint64
	Mono    uint64 // both clocks at one moment, ns
	Real    uint64
	Process [format.IDLen]byte // drawn when the file is made
	Boot    [format.IDLen]byte
	Host    string
	Build   string
	Started uint64 // of the process, in ticks, as /proc/PID/stat has it; 0: not known
	PIDs    uint64 // the number of the namespace in which PID counts; 0: not known
	Alive   uint64 // when the process last showed that it runs, as records have their time: twice a second
}

// Read takes it from a first page, which is whole.
func Read(page []byte) Owner {
	u64 := func(at int) uint64 { return binary.LittleEndian.Uint64(page[at:]) }
	return Owner{
		PID: u64(format.OffPID), Mono: u64(format.OffMono), Real: u64(format.OffReal),
		Process: [format.IDLen]byte(page[format.OffProcess:]), Boot: [format.IDLen]byte(page[format.OffBoot:]),
		Host: Line(page[format.OffHost : format.OffHost+format.TextLen]), Build: Line(page[format.OffBuild : format.OffBuild+format.TextLen]),
		Started: u64(format.OffStarted), PIDs: u64(format.OffPIDs), Alive: u64(format.OffAlive),
	}
}

// Time is a time of the process's records by its realtime clock.
func (o *Owner) Time(mono uint64) time.Time { return time.Unix(0, int64(o.Real+mono-o.Mono)) }

// Line is a text that ends with NUL or its field.
func Line(field []byte) string {
	text, _, _ := bytes.Cut(field, []byte{0})
	return Plain(text)
}

// Plain keeps what a file says from steering a terminal.
func Plain(text []byte) string {
	return strings.Map(func(r rune) rune {
		if r == unicode.ReplacementChar || !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, string(text))
}
