// Package contents tells what is in one of the recorder's files.
package contents

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"weft/internal/trace"
	"weft/internal/trace/model"
	"weft/transport/record/format"
)

// Schema is the version of the JSON. Times are in nanoseconds.
const Schema = 1

// File is what one holds.
type File struct {
	Schema        int            `json:"schema"`
	Path          string         `json:"path"`
	Process       string         `json:"process"`
	Host          string         `json:"host"`
	PID           uint64         `json:"pid"`
	Boot          string         `json:"boot"`
	Build         string         `json:"build"`
	Made          time.Time      `json:"made"`
	Chunks        uint32         `json:"chunks"`
	Turns         uint64         `json:"turns"`
	Records       int            `json:"records"`
	Span          uint64         `json:"span"` // from the first record to the last
	Overwritten   uint64         `json:"overwritten"`
	Refused       uint64         `json:"refused"`
	Torn          uint64         `json:"torn"`
	Unread        uint64         `json:"unread_chunks"`
	Unnamed       uint64         `json:"unnamed"`
	Threads       []Thread       `json:"threads"`
	Communicators []Communicator `json:"communicators"`
	Connections   []Connection   `json:"connections"`
	Events        []Events       `json:"events"`
	Said          []Said         `json:"said"`
	Delayed       float64        `json:"delayed"` // the part of Span in which a thread could run and had no core
	Notes         []string       `json:"notes"`
}

// Said is what the process said of a stall in its host's log.
type Said struct {
	Ns   uint64 `json:"ns"` // from the first record on
	Text string `json:"text"`
}

// Thread has written records.
type Thread struct {
	TID     uint32 `json:"tid"`
	Name    string `json:"name"`
	Records int    `json:"records"`
}

// Communicator is one of the process.
type Communicator struct {
	Number  uint16 `json:"number"`
	ID      uint64 `json:"id"` // 0: the host gives none
	Name    string `json:"name"`
	Rank    int32  `json:"rank"`
	Ranks   int    `json:"ranks"`
	Nodes   int    `json:"nodes"`
	Version uint32 `json:"table_version"` // 0: its record is gone
	Ended   bool   `json:"ended"`
}

// Connection is one of the process's network.
type Connection struct {
	Handle   uint64 `json:"handle"`
	Sends    bool   `json:"sends"`
	Network  string `json:"network"`
	Number   uint64 `json:"number"`
	Device   string `json:"device"`
	Peer     string `json:"peer"`
	Messages int    `json:"messages"`
	Bytes    uint64 `json:"bytes"`
	Open     int    `json:"open"`
	Failed   int    `json:"failed"`
}

// Events are those of a type.
type Events struct {
	Type     string `json:"type"`
	Count    int    `json:"count"`
	Open     int    `json:"open"`     // were not over when the recording was
	Launch   int    `json:"launch"`   // nothing tells when they were over
	Captured int    `json:"captured"` // into graphs
}

// New takes stock of a file.
func New(f *trace.File) *File {
	t := model.New([]*trace.File{f})
	p := t.Processes[0]
	h := f.Header
	out := &File{
		Schema: Schema, Path: f.Path, Process: p.Name(), Host: h.Host, PID: h.PID, Boot: hex.EncodeToString(h.Boot[:]), Build: h.Build,
		Made: time.Unix(0, int64(h.Real)).UTC(), Chunks: h.Chunks, Turns: h.Turns, Records: f.Records(), Span: p.Last - p.First,
		Overwritten: f.Loss.Overwritten, Refused: f.Loss.Refused, Torn: f.Loss.Torn, Unread: f.Loss.Unread, Unnamed: f.Loss.Unnamed,
		Threads: []Thread{}, Communicators: []Communicator{}, Connections: []Connection{}, Events: []Events{}, Said: []Said{}, Notes: []string{},
	}
	for _, th := range p.Threads {
		out.Threads = append(out.Threads, Thread(th))
	}
	for _, c := range p.Comms {
		out.Communicators = append(out.Communicators, Communicator{
			Number: c.Number, ID: c.Of.ID, Name: c.Of.Name, Rank: c.Rank, Ranks: c.Of.Ranks, Nodes: c.Of.Nodes, Version: c.Version, Ended: c.To != model.Never,
		})
	}
	for _, e := range p.Ends {
		out.Connections = append(out.Connections, connection(e))
	}
	out.Events = events(p)
	out.Delayed = p.Delayed(p.Machine.At(p.First), p.Machine.At(p.Last))
	for _, s := range p.Said {
		out.Said = append(out.Said, Said{s.Time - p.First, s.Text})
	}
	out.Notes = append(out.Notes, f.Notes...)
	if n := p.Orphans(); n > 0 {
		out.Notes = append(out.Notes, fmt.Sprintf("%d stops and states of events whose start is gone", n))
	}
	return out
}

func connection(e *model.End) Connection {
	c := Connection{Handle: e.Handle, Sends: e.Sends, Network: e.NetworkName(), Number: e.Number, Device: e.Device, Peer: e.Peer, Messages: len(e.Messages)}
	for _, m := range e.Messages {
		switch {
		case m.Open:
			c.Open++
		case m.Failed:
			c.Failed++
		default:
			c.Bytes += m.Bytes
		}
	}
	return c
}

func events(p *model.Process) []Events {
	byType := map[uint8]*Events{}
	var types []uint8
	for _, e := range p.Events {
		x := byType[e.Type]
		if x == nil {
			x = &Events{Type: e.TypeName()}
			byType[e.Type] = x
			types = append(types, e.Type)
		}
		x.Count++
		for _, is := range []struct {
			so bool
			n  *int
		}{{e.Open, &x.Open}, {e.Launch && !e.Captured, &x.Launch}, {e.Captured, &x.Captured}} {
			if is.so {
				*is.n++
			}
		}
	}
	slices.SortFunc(types, func(a, b uint8) int { return cmp.Compare(order(a), order(b)) })
	all := []Events{}
	for _, t := range types {
		all = append(all, *byType[t])
	}
	return all
}

// order is that of the hierarchy.
func order(t uint8) int {
	if i := slices.Index([]uint8{
		format.GroupAPI, format.CollAPI, format.P2pAPI, format.Group, format.Coll, format.P2p, format.KernelLaunch, format.KernelCh, format.KernelPhase,
		format.CeColl, format.CeSync, format.CeBatch, format.ProxyOp, format.ProxyStep, format.NetPlugin, format.ProxyCtrl,
	}, t); i >= 0 {
		return i
	}
	return format.Types + int(t)
}
