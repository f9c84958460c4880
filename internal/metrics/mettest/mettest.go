// Package mettest makes files as processes that count write them, for tests of what
// reads them.
package mettest

import (
	"encoding/binary"

	"weft/transport/meter/format"
	record "weft/transport/record/format"
)

// File is one that is being made.
type File struct{ Bytes []byte }

// Place is one of its places.
type Place struct {
	Total      bool
	Flags      uint32 // as those of the recorder's Link
	Number     uint64
	Device     string
	Peer       string
	PeerPID    uint32
	PeerDevice string
	Lanes      uint32
	Since      uint64
	Begun      uint64 // beside those that Times and Failed count
	Bytes      uint64 // of a message
	Times      []uint64
	Failed     uint64
	Waits      uint64
	Waited     uint64
	Closed     uint64
	Broken     uint64
	LaneBytes  []uint64
}

// New begins a file of a process that last ran at time 2000 of its clock, which was
// 1000 at realtime real.
func New(host string, pid, real uint64) *File {
	f := &File{make([]byte, format.Page)}
	copy(f.Bytes, format.Magic)
	f.u32(format.OffVersion, format.Version)
	f.u32(format.OffPlaces, format.Places)
	f.u32(format.OffPlaceBytes, format.PlaceBytes)
	f.u64(record.OffPID, pid)
	f.u64(record.OffMono, 1000)
	f.u64(record.OffReal, real)
	f.u64(record.OffProcess, pid)
	f.u64(record.OffAlive, 2000)
	copy(f.Bytes[record.OffHost:], host)
	copy(f.Bytes[record.OffBuild:], "test")
	return f
}

func (f *File) u32(at int, v uint32) { binary.LittleEndian.PutUint32(f.Bytes[at:], v) }
func (f *File) u64(at int, v uint64) { binary.LittleEndian.PutUint64(f.Bytes[at:], v) }

// Stalls says how many waits the process has told of, and how many of these last.
func (f *File) Stalls(told uint64, last uint32) {
	f.u64(format.OffStalls, told)
	f.u32(format.OffStalled, last)
}

// Rank says which rank the process is.
func (f *File) Rank(rank, ranks uint32) {
	f.u32(format.OffRank, rank+1)
	f.u32(format.OffRanks, ranks)
}

// Uncounted says how many connections found no place.
func (f *File) Uncounted(n uint64) { f.u64(format.OffUncounted, n) }

// Add adds a place.
func (f *File) Add(p Place) {
	at := len(f.Bytes)
	f.Bytes = append(f.Bytes, make([]byte, format.PlaceBytes)...)
	f.u32(format.OffUsed, uint32((len(f.Bytes)-format.Page)/format.PlaceBytes))
	f.u32(at+format.OffState, format.Connection)
	if p.Total {
		f.u32(at+format.OffState, format.Total)
	}
	f.u32(at+format.OffFlags, p.Flags)
	f.u32(at+format.OffPeerPID, p.PeerPID)
	f.u32(at+format.OffLanes, p.Lanes)
	for offset, text := range map[int]string{format.OffDevice: p.Device, format.OffPeer: p.Peer, format.OffPeerDevice: p.PeerDevice} {
		copy(f.Bytes[at+offset:], text)
	}
	sum, n := uint64(0), uint64(len(p.Times))
	for _, ns := range p.Times {
		sum += ns
		bucket := f.Bytes[at+format.OffBuckets+8*format.Bucket(ns):]
		binary.LittleEndian.PutUint64(bucket, binary.LittleEndian.Uint64(bucket)+1)
	}
	for i, bytes := range p.LaneBytes {
		f.u64(at+format.OffLaneBytes+8*i, bytes)
	}
	for offset, v := range map[int]uint64{
		format.OffNumber: p.Number, format.OffSince: p.Since, format.OffBegun: p.Begun + n + p.Failed, format.OffMessages: n, format.OffMoved: n * p.Bytes,
		format.OffFailed: p.Failed, format.OffTime: sum, format.OffWaits: p.Waits, format.OffWaited: p.Waited, format.OffClosed: p.Closed, format.OffBroken: p.Broken,
	} {
		f.u64(at+offset, v)
	}
}
