// Package model makes of what processes have recorded the events, communicators
// and connections of a job, across its processes and machines.
package model

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"weft/internal/trace"
	"weft/internal/trace/clock"
	"weft/transport/record/format"
)

// Trace is a job, or what was recorded of it.
type Trace struct {
	Machines      []*Machine
	Processes     []*Process
	Communicators []*Communicator
	Connections   []*Connection // of which both ends were recorded
	Notes         []string      // what is missing or doubtful
}

// Machine is one whose processes read the same clock.
type Machine struct {
	Index int
	Host  string // as its first process names it
	Clock clock.Offset

	boot [format.IDLen]byte
	real clock.Machine
}

// At is the machine's time in that of the first machine.
func (m *Machine) At(t uint64) int64 { return int64(t) + m.Clock.Add }

// Process is one of the job.
type Process struct {
	Index   int
	Machine *Machine
	Path    string
	Header  trace.Header
	Loss    trace.Loss
	Threads []Thread
	Events  []*Event // by their time
	Comms   []*Comm
	Ends    []*End
	GPU     []GPU // one of each communicator that has such times
	Said    []Said
	Delays  []RunDelay // by their time
	First   uint64
	Last    uint64

	events map[uint64]*Event
	text   func(uint32) string
	orphan int
}

// Thread is one of a process.
type Thread struct {
	TID     uint32
	Name    string
	Records int
}

// Name tells processes apart.
func (p *Process) Name() string { return fmt.Sprintf("%s:%d", p.Header.Host, p.Header.PID) }

// Title is the process as people call it: by its rank in its first communicator.
func (p *Process) Title() string {
	for _, c := range p.Comms {
		if c.Rank >= 0 && c.Of.ID != 0 {
			return fmt.Sprintf("rank %d (%s)", c.Rank, p.Name())
		}
	}
	return p.Name()
}

// Seen is when the process last recorded something, or showed that it ran.
func (p *Process) Seen() uint64 { return max(p.Last, p.Header.Alive) }

// Orphans is how many stops and states there are of events whose start is gone.
func (p *Process) Orphans() int { return p.orphan }

// Text is what a name in the process's records stands for.
func (p *Process) Text(name uint64) string { return p.text(uint32(name)) }

// Never is the time of what has not happened.
const Never = math.MaxUint64

// State is one that an event has entered.
type State struct {
	Time    uint64
	Number  uint32
	A, B, C uint64
}

// Event is one of the profiler's.
type Event struct {
	format.Record // of its start
	Process       *Process
	Thread        int // of its process
	In            *Comm
	Up            *Event
	Down          []*Event
	States        []State
	Stop          uint64 // Never: it was not stopped

	From, To uint64 // what it takes, by its children where they say it; of a kernel on the GPU, in the host's time
	Open     bool   // it had not ended when the recording did: To is the process's last time
	Launch   bool   // From and To are its enqueueing: nothing tells when it was done
	Captured bool   // into a graph: what is below it may have run many times
	OnGPU    bool   // From and To are the GPU's times
}

// Comm is a communicator in one process.
type Comm struct {
	Process *Process
	Number  uint16
	Rank    int32 // -1: nothing says it
	Version uint32
	Known   bool // its record is there
	From    uint64
	To      uint64 // Never: it was not destroyed
	Of      *Communicator
}

// Communicator is one across processes. Where the host gives it no identity, each
// process has one of its own.
type Communicator struct {
	ID    uint64 // 0: none
	Name  string
	Ranks int // 0: nothing says it
	Nodes int
	Comms []*Comm // by rank
}

// Label names the communicator for people.
func (c *Communicator) Label() string {
	switch {
	case c.Name != "":
		return c.Name
	case c.ID != 0:
		return fmt.Sprintf("%#x", c.ID)
	}
	return "without identity"
}

// New puts together what was read of the processes' files. They may be forgotten then.
func New(files []*trace.File) *Trace {
	t := &Trace{}
	files = slices.Clone(files)
	slices.SortStableFunc(files, func(a, b *trace.File) int {
		return cmp.Or(cmp.Compare(a.Header.Host, b.Header.Host), cmp.Compare(a.Header.PID, b.Header.PID))
	})
	for _, f := range files {
		t.add(f)
	}
	t.communicators()
	t.parents()
	for _, p := range t.Processes {
		p.gpus()
	}
	t.ends()
	t.connections()
	t.align()
	return t
}

func (t *Trace) note(format string, args ...any) {
	t.Notes = append(t.Notes, fmt.Sprintf(format, args...))
}

func (t *Trace) machine(h trace.Header) *Machine {
	for _, m := range t.Machines {
		if m.boot == h.Boot && h.Boot != [format.IDLen]byte{} {
			return m
		}
	}
	m := &Machine{Index: len(t.Machines), Host: h.Host, boot: h.Boot, real: clock.Machine{Mono: h.Mono, Real: h.Real}}
	t.Machines = append(t.Machines, m)
	return m
}
