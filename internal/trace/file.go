package trace

import (
	"fmt"
	"io"
	"strings"

	"weft/internal/owner"
	"weft/transport/record/format"
)

// File is what could be read of one.
type File struct {
	Path    string
	Header  Header
	Threads []Thread
	Loss    Loss
	Notes   []string // what could not be read, and why

	texts map[uint32]string
}

// Thread is what one thread has recorded, in the order of time.
type Thread struct {
	TID     uint32
	Name    string
	Records []Record
}

// Record is one of a file.
type Record struct {
	At uint64 // its position, which names what begins with it
	format.Record
}

// Loss says what a file lacks.
type Loss struct {
	Overwritten uint64 // places of records that newer ones took, written or not
	Refused     uint64 // events that found every chunk in use
	Unnamed     uint64 // texts that found no room
	Torn        uint64 // records that were never completed
	Unread      uint64 // chunks that are damaged, not there any more, or were overwritten again and again while they were read
}

// Any reports whether events may be missing.
func (l Loss) Any() bool { return l.Overwritten+l.Refused+l.Torn+l.Unread > 0 }

// String says it in a line.
func (l Loss) String() string {
	var kinds []string
	for _, k := range []struct {
		n                uint64
		most, what, lost string
	}{
		{l.Overwritten, "up to ", "record", "overwritten"}, {l.Refused, "", "event", "refused"}, {l.Torn, "", "record", "torn"},
		{l.Unread, "", "chunk", "unread"}, {l.Unnamed, "", "text", "without room"},
	} {
		switch {
		case k.n == 1:
			kinds = append(kinds, fmt.Sprintf("%s1 %s %s", k.most, k.what, k.lost))
		case k.n > 1:
			kinds = append(kinds, fmt.Sprintf("%s%d %ss %s", k.most, k.n, k.what, k.lost))
		}
	}
	if kinds == nil {
		return "nothing"
	}
	return strings.Join(kinds, ", ")
}

// Text is the one of that name, "" if the name is 0 or there is none.
func (f *File) Text(name uint32) string { return f.texts[name] }

// Records is how many were read.
func (f *File) Records() int {
	n := 0
	for _, t := range f.Threads {
		n += len(t.Records)
	}
	return n
}

func (f *File) note(format string, args ...any) {
	f.Notes = append(f.Notes, fmt.Sprintf(format, args...))
}

// Open reads the file of that name. An error means that nothing could be read;
// what is wrong with parts of it is in Notes.
func Open(path string) (*File, error) {
	f, err := owner.Open(path, Read)
	if err != nil {
		return nil, err
	}
	f.Path = path
	return f, nil
}

// Read reads a file of that size.
func Read(r io.ReaderAt, size int64) (*File, error) {
	f := &File{texts: map[uint32]string{}}
	chunks, err := f.readHeader(r, size)
	if err != nil {
		return nil, err
	}
	all := f.timely(f.readChunks(r, chunks))
	f.readTexts(r, size) // after the records, whose names are there before them
	f.readLoss(r)
	f.Loss.Unread += max(min(f.Header.Turns, uint64(f.Header.Chunks)), uint64(chunks)) - uint64(chunks) // that were taken
	f.thread(all)
	return f, nil
}
