// Package format is the layout of the recorder's files, for what reads them:
// plain Go, the same as record.h says in C. Everything is in the byte order of
// the machine that wrote it, which is little-endian on all that weft runs on.
package format

// Version of the file. A reader refuses a newer one.
const Version = 1

// Magic begins a file.
const Magic = "weftrec\x00"

// Sizes, in bytes, and counts.
const (
	Page         = 4096 // the header
	ChunkBytes   = 65536
	ChunkRecords = 1024 // places of a chunk; place 0 is its head
	RecordBytes  = 64
	CellBytes    = 64
	CellText     = 56
	Cells        = 4096
	CellsAt      = Page
	ChunksAt     = CellsAt + Cells*CellBytes
)

// Offsets in the header.
const (
	OffVersion  = 8
	OffChunks   = 12
	OffCellsAt  = 16
	OffChunksAt = 20
	OffPID      = 24
	OffMono     = 32
	OffReal     = 40
	OffProcess  = 48  // 16 bytes, drawn when the file is made
	OffBoot     = 64  // 16 bytes: files of one boot have one clock
	OffHost     = 80  // NUL-terminated
	OffBuild    = 144 // NUL-terminated
	OffTurns    = 208
	OffLost     = 216 // places of chunks that were overwritten
	OffRefused  = 224 // events of threads that found every chunk in use
	OffUnnamed  = 232 // texts that found no cell
	OffStarted  = 240 // of the process, in ticks, as /proc/PID/stat has it; 0: not known
	OffPIDs     = 248 // the number of the namespace in which the PID counts; 0: not known
	OffAlive    = 256 // when the process last showed that it runs, as records have their time; twice a second
	IDLen       = 16
	TextLen     = 64
)

// Offsets in a chunk's head.
const (
	OffTurn   = 0
	OffActive = 8
	OffTID    = 12
	OffName   = 16
)

// Offsets in a cell.
const (
	OffCellState  = 0
	OffCellLength = 4
	OffCellText   = 8
	CellComplete  = 2
)

// Kind of a record.
type Kind uint8

const (
	Start      Kind = 1 // an event of the host's profiler begins
	Stop       Kind = 2 // it ends, or, of what runs on the GPU, has been queued
	State      Kind = 3 // it has entered the state of Flags
	More       Kind = 4 // the rest of the record before
	Comm       Kind = 5 // a communicator
	CommEnd    Kind = 6
	Link       Kind = 7 // a connection of the network
	Message    Kind = 8 // a request of a connection begins
	MessageEnd Kind = 9
	Said       Kind = 10 // a part of what the process said of a stall in its host's log
	RunDelay   Kind = 11 // a window in which a thread of the process waited long for a core
)

// SaidBytes are those of the text in a Said, SaidMost how many make one text at most.
const (
	SaidBytes = 56
	SaidMost  = 16
)

// Record is one of a file, and what More added to it.
type Record struct {
	Kind   Kind
	Type   uint8  // of the profiler's events: number of the bit that is their type
	Comm   uint16 // the communicator, 0: none
	Time   uint64 // CLOCK_MONOTONIC of the process's machine, ns
	ID     uint64 // of the event or message
	Parent uint64 // an ID, maybe of another process
	Rank   int32
	Flags  uint32
	A      uint64
	B      uint64
	C      uint64
	More   [7]uint64 // zeroes where there is none
}

// An ID of a profiler's event is its type's number + 1 in the highest byte, and
// the position of its Start record: turn of the chunk * ChunkRecords + place.
// The highest bit marks a NetPlugin whose words are those of NetIB.
const (
	TypeShift = 56
	OfIB      = 1 << 63
)

// IDType is the number of the bit that is the event's type.
func IDType(id uint64) uint8 { return uint8(id&^OfIB>>TypeShift) - 1 }

// Types of the profiler's events: numbers of the bits of NCCL's activation mask.
const (
	Group        = 0
	Coll         = 1
	P2p          = 2
	ProxyOp      = 3
	ProxyStep    = 4
	ProxyCtrl    = 5
	KernelCh     = 6
	NetPlugin    = 7
	GroupAPI     = 8
	CollAPI      = 9
	P2pAPI       = 10
	KernelLaunch = 11
	CeColl       = 12
	CeSync       = 13
	CeBatch      = 14
	KernelPhase  = 15
	Types        = 16
)

// What is in A, B, C, Flags and More of a record. "name" is a text's: the number
// of its cell + 1, 0 for none. x | y<<n: two values in a word.
//
// Start, by type:
//
//	Group         nothing
//	GroupAPI      A depth; Flags captured
//	CollAPI       A count, B stream, C the user's tag; Flags captured; More func name | datatype name<<32, root
//	P2pAPI        A count, B stream, C the user's tag; Flags captured; More func name | datatype name<<32
//	KernelLaunch  B stream
//	Coll          A number, B count, C the user's tag; More func name | datatype name<<32, algorithm name | protocol name<<32,
//	              root | channels<<32 | warps<<40 | symmetric<<48, send buffer, receive buffer, group's ID, kernel's name
//	P2p           A count, B peer, C the user's tag; More func name | datatype name<<32, channels, buffer, group's ID
//	ProxyOp       A pid | channel<<32 | send<<40, B peer | steps<<32, C chunk size. The parent is of the process pid, which may be another
//	ProxyStep     A step
//	KernelCh      A channel, B the GPU's timer
//	KernelPhase   A channel | phase<<8, B the GPU's timer, C the phase's name
//	NetPlugin     Flags kind and version of the network's descriptor (NetIB, NetSocket), A and B, C as below
//	CeColl        A number, B count, C the user's tag; Flags synchronised within batches; More func name | datatype name<<32, strategy name, root | batch size<<32,
//	              send buffer, receive buffer, stream, batches | number of copy engines' work<<32
//	CeSync        A complete | ranks<<32
//	CeBatch       A operations, B bytes, C synchronised within
//
// NetPlugin's words, at its start and in State 21: NetIB: A wr_id, B length,
// C device | opcode<<16 | QP<<32. NetSocket: A descriptor | op<<32, B length.
// Where weft itself made the event, More follows its Start: the connection's
// handle, the message's ID, entry.
//
// State, by type: ProxyStep: A bytes so far. ProxyCtrl: A operations appended.
// KernelCh and KernelPhase: A the GPU's timer at the end. NetPlugin: as above.
//
//	Comm        Comm its number, Rank, A NCCL's id of it, B name | ranks<<32, C nodes | table version<<32
//	CommEnd     Comm
//	Link        ID the connection's handle, Flags Sends or Receives | OverTCP or OverRDMA, A number that both ends know,
//	            B device's name | peer's name<<32, C NCCL's id of the communicator, 0 where it has none
//	Message     ID its own position, Parent the connection's handle, Flags Sends or Receives | entries<<8, A number of the group,
//	            0: not known yet, B bytes (of a receive: room), C tag of its first entry; of more than one: More the tags, two a word;
//	            Rank of a send: how often the host has asked for one in vain, of all so far on the connection
//	MessageEnd  ID of its Message, Flags Failed or 0, A number of the group and, of a send, C its entry there; 0 and AheadEntry:
//	            it left before they were known; B bytes; of more than one entry: More the bytes of each, two a word
//	Said        ID the text's number, Flags the part's place in it, from 0; More the bytes of the part, zeroes behind the last
//	RunDelay    A the window that ends with Time, ns; B how long of it the thread that waited longest could run and had no core, ns
//
// The messages of one connection and tag arrive in the order in which they were sent.
const (
	NetIB      = 0x10000 | 1
	NetSocket  = 0x20000 | 1
	AheadEntry = 0xff

	Sends    = 1
	Receives = 2
	OverTCP  = 1 << 8
	OverRDMA = 2 << 8
	Failed   = 1
)
