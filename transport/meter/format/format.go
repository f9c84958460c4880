// Package format is the layout of the files in which processes count, for what reads
// them: plain Go, the same as meter.h says in C. Little-endian, as the recorder's.
package format

import (
	"math/bits"

	record "weft/transport/record/format"
)

// Version of the file. A reader refuses a newer one.
const Version = 1

// Magic begins a file.
const Magic = "weftmet\x00"

// Suffix ends its name.
const Suffix = ".met"

// Sizes, in bytes, and counts.
const (
	Page       = record.Page // the header
	PlaceBytes = 4096
	Places     = 2048
	Lanes      = 32
	Buckets    = 256
	Bytes      = Page + Places*PlaceBytes
	TextLen    = record.TextLen
)

// Offsets in the header, beside those that the recorder's has too: of the process, its
// clocks, and when it last showed that it runs.
const (
	OffVersion    = record.OffVersion
	OffPlaces     = 12
	OffPlaceBytes = 16
	OffTurns      = 208 // odd while what closed connections have counted is moved
	OffUncounted  = 216 // connections that found no place
	OffUsed       = 224 // places above were never used
	OffRank       = 228 // of the process in its largest communicator, from 1; 0: not known
	OffRanks      = 232 // of that communicator
	OffStalled    = 236 // waits that were told in the log and last
	OffStalls     = 264 // waits that were told; before it the recorder's OffStarted to OffAlive
)

// Offsets in a place.
const (
	OffState      = 0  // State
	OffFlags      = 4  // as those of the recorder's Link
	OffNumber     = 8  // of the connection, which both ends know
	OffOpened     = 16 // CLOCK_MONOTONIC, ns
	OffPeerPID    = 24
	OffLanes      = 28
	OffDevice     = 32 // three texts, NUL-terminated
	OffPeer       = OffDevice + TextLen
	OffPeerDevice = OffPeer + TextLen
	OffSince      = 224 // CLOCK_MONOTONIC: a send has waited for its receive since; 0: none does
	OffSums       = 256 // words from here on are added when connections are moved together
	OffBegun      = 256 // messages: those that are neither counted nor failed are under way
	OffMessages   = 264
	OffMoved      = 272 // bytes of them
	OffFailed     = 280
	OffTime       = 288 // ns, sum over messages
	OffWaits      = 296 // sends that found no receive
	OffWaited     = 304 // ns in which they did not
	OffClosed     = 312 // connections that are closed
	OffBroken     = 320 // of those, the ones that failed before
	OffLaneBytes  = 512
	OffBuckets    = 2048
)

// State of a place.
const (
	Free       = 0
	Connection = 1
	Total      = 2 // of closed connections between the same devices and processes
)

// Bucket is the number of the bucket in which a time is counted: eight for each power
// of two from Least on, and all below in the first, all above in the last.
func Bucket(ns uint64) int {
	if ns < Least {
		return 0
	}
	octave := bits.Len64(ns) - 1
	return min((octave-leastOctave)*perOctave+int(ns>>(octave-3)&(perOctave-1))+1, Buckets-1)
}

// Least is the first time that is told from shorter ones, ns.
const Least = 1 << leastOctave

const (
	leastOctave = 6
	perOctave   = 8
)

// Begin is the least time of a bucket, ns.
func Begin(bucket int) uint64 {
	if bucket == 0 {
		return 0
	}
	octave, part := (bucket-1)/perOctave, (bucket-1)%perOctave
	return Least<<octave + uint64(part)<<octave*(Least/perOctave)
}
