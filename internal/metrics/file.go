package metrics

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"weft/internal/owner"
	"weft/transport/meter/format"
	record "weft/transport/record/format"
)

// File is what could be read of one.
type File struct {
	Path string
	owner.Owner
	Rank, Ranks int // of the process in its largest communicator; Ranks 0: not known
	Links       []Link
	Uncounted   uint64   // connections that found no place
	Stalls      uint64   // waits that the process's log has told of (WEFT_PROFILE=stall)
	Stalled     uint32   // of those, the ones that last
	Notes       []string // what could not be read, and why
}

// Link is a connection, or what was counted by those that are closed.
type Link struct {
	Key
	Open     bool
	Number   uint64        // which both ends know
	Opened   uint64        // clock of the process, ns
	Lanes    int           // queue pairs or sockets
	InFlight uint64        // messages that have begun
	Waits    time.Duration // for how long a send has waited for its receive, until the process last showed that it ran
	Counts   Counts
}

// Key is between which ends a connection is, and how.
type Key struct {
	Sends      bool
	RDMA       bool
	Device     string
	Peer       string // its host
	PeerPID    uint32
	PeerDevice string
}

// Direction is "send" or "receive".
func (k *Key) Direction() string {
	if k.Sends {
		return "send"
	}
	return "receive"
}

// Network is "rdma" or "tcp".
func (k *Key) Network() string {
	if k.RDMA {
		return "rdma"
	}
	return "tcp"
}

var order = binary.LittleEndian

// Open reads the file of that name. An error means that nothing could be read; what is
// wrong with parts of it is in Notes.
func Open(path string) (*File, error) {
	f, err := owner.Open(path, Read)
	if err != nil {
		return nil, err
	}
	f.Path = path
	return f, nil
}

// A file is read again while places of it are moved.
const (
	tries = 20
	pause = time.Millisecond
)

// Read reads a file of that size.
func Read(r io.ReaderAt, size int64) (*File, error) {
	for try := 1; ; try++ {
		f := &File{}
		before, err := f.readHeader(r)
		if err != nil {
			return nil, err
		}
		f.readPlaces(r, size)
		var word [8]byte
		_, err = r.ReadAt(word[:], format.OffTurns)
		after := order.Uint64(word[:])
		if err == nil && before == after && before%2 == 0 {
			return f, nil
		}
		if try == tries {
			f.note("it was changed while it was read, or its process ended while it added up: something may be counted twice or not at all")
			return f, nil
		}
		time.Sleep(pause)
	}
}

func (f *File) note(format string, args ...any) {
	f.Notes = append(f.Notes, fmt.Sprintf(format, args...))
}

// readHeader returns the turns.
func (f *File) readHeader(r io.ReaderAt) (uint64, error) {
	page := make([]byte, format.Page)
	n, err := r.ReadAt(page, 0)
	if !bytes.HasPrefix(page[:n], []byte(format.Magic)) {
		return 0, fmt.Errorf("not a file of weft's metrics: it begins %q and not %q", page[:min(n, len(format.Magic))], format.Magic)
	}
	if n < format.Page {
		if err == nil || errors.Is(err, io.EOF) {
			err = fmt.Errorf("it has %d bytes: a header has %d", n, format.Page)
		}
		return 0, err
	}
	u32 := func(at int) uint32 { return order.Uint32(page[at:]) }
	if v := u32(format.OffVersion); v == 0 || v > format.Version {
		return 0, fmt.Errorf("the file is of version %d, this weft reads version %d: read it with the weft that belongs to the library", v, format.Version)
	}
	if bytes := u32(format.OffPlaceBytes); bytes != format.PlaceBytes {
		f.note("the header has places of %d bytes; in version %d they have %d", bytes, format.Version, format.PlaceBytes)
	}
	f.Owner = owner.Read(page)
	if rank, ranks := u32(format.OffRank), u32(format.OffRanks); rank > 0 && rank <= ranks {
		f.Rank, f.Ranks = int(rank)-1, int(ranks)
	}
	f.Uncounted = order.Uint64(page[format.OffUncounted:])
	f.Stalls, f.Stalled = order.Uint64(page[format.OffStalls:]), u32(format.OffStalled)
	f.Links = make([]Link, 0, min(u32(format.OffUsed), format.Places))
	if used := u32(format.OffUsed); used > format.Places {
		f.note("%d places are in use, it says; there are %d", used, format.Places)
	}
	return order.Uint64(page[format.OffTurns:]), nil
}

func (f *File) readPlaces(r io.ReaderAt, size int64) {
	places := cap(f.Links)
	if has := int(max(0, size-format.Page) / format.PlaceBytes); has < places {
		f.note("cut short: it says that %d places are in use, it has %d", places, has)
		places = has
	}
	page, strange := make([]byte, format.PlaceBytes), 0
	for i := range places {
		if n, err := r.ReadAt(page, format.Page+int64(i)*format.PlaceBytes); n < len(page) {
			f.note("of %d places %d were read: %v", places, i, err)
			return
		}
		switch order.Uint32(page[format.OffState:]) {
		case format.Free:
		case format.Connection, format.Total:
			f.Links = append(f.Links, f.link(page))
		default:
			strange++
		}
	}
	if strange > 0 {
		f.note("%d places are in a state that they cannot be in", strange)
	}
}

func (f *File) link(page []byte) Link {
	u32 := func(at int) uint32 { return order.Uint32(page[at:]) }
	u64 := func(at int) uint64 { return order.Uint64(page[at:]) }
	text := func(at int) string { return owner.Line(page[at : at+format.TextLen]) }
	flags := u32(format.OffFlags)
	l := Link{
		Key: Key{
			Sends: flags&record.Sends != 0, RDMA: flags&record.OverRDMA != 0,
			Device: text(format.OffDevice), Peer: text(format.OffPeer), PeerPID: u32(format.OffPeerPID), PeerDevice: text(format.OffPeerDevice),
		},
		Open: u32(format.OffState) == format.Connection, Number: u64(format.OffNumber), Opened: u64(format.OffOpened), Lanes: int(min(u32(format.OffLanes), 1024)),
		Counts: Counts{
			Messages: u64(format.OffMessages), Bytes: u64(format.OffMoved), Failed: u64(format.OffFailed), Time: u64(format.OffTime),
			Waits: u64(format.OffWaits), Waited: u64(format.OffWaited), Closed: u64(format.OffClosed), Broken: u64(format.OffBroken),
		},
	}
	for i := range l.Counts.LaneBytes {
		l.Counts.LaneBytes[i] = u64(format.OffLaneBytes + 8*i)
	}
	for i := range l.Counts.Buckets {
		l.Counts.Buckets[i] = u64(format.OffBuckets + 8*i)
	}
	if !l.Open {
		return l
	}
	if begun, over := u64(format.OffBegun), l.Counts.Messages+l.Counts.Failed; begun > over {
		l.InFlight = begun - over
	}
	if since := u64(format.OffSince); since > 0 && since < f.Alive {
		l.Waits = time.Duration(f.Alive - since)
	}
	return l
}
