// Package perfetto writes a drawn trace as Perfetto's protobuf, which its viewer
// and its trace processor read.
package perfetto

import (
	"bufio"
	"io"

	"google.golang.org/protobuf/encoding/protowire"

	"weft/internal/trace/draw"
)

// Write writes the picture.
func Write(w io.Writer, p *draw.Picture) error {
	out := &writer{
		w:          bufio.NewWriterSize(w, 1<<20),
		names:      table{internedNames, map[string]uint64{}},
		categories: table{internedCategories, map[string]uint64{}},
		args:       table{internedAnnotations, map[string]uint64{}},
		texts:      table{internedTexts, map[string]uint64{}},
	}
	out.begin()
	for i, pr := range p.Processes {
		out.process(i, pr)
	}
	// Of events at one time, those of earlier packets come first: an arrow must
	// leave before it arrives.
	for _, arrows := range []bool{true, false} {
		for _, l := range out.lanes {
			if draw.Sends(l.slices) == arrows {
				for i := range l.slices {
					out.slice(l.uuid, &l.slices[i])
				}
			}
		}
	}
	if out.err != nil {
		return out.err
	}
	return out.w.Flush()
}

// lane is a track of the file: slices that do not overlap.
type lane struct {
	uuid   uint64
	slices []draw.Slice
}

// writer writes packets, all of one sequence.
type writer struct {
	w          *bufio.Writer
	err        error
	uuid       uint64 // the last one given
	lanes      []lane
	names      table
	categories table
	args       table
	texts      table
}

func (w *writer) packet(m message) {
	m.uint(packetSequence, 1)
	var framed message
	framed.message(tracePacket, m)
	if w.err == nil {
		_, w.err = w.w.Write(framed)
	}
}

// begin orders the processes as they come.
func (w *writer) begin() {
	var root, m message
	root.uint(descriptorUUID, 0)
	root.uint(descriptorOrdering, orderingExplicit)
	m.message(packetDescriptor, root)
	m.uint(packetSequenceFlags, sequenceCleared)
	w.packet(m)
}

func (w *writer) descriptor(d message) {
	var m message
	m.message(packetDescriptor, d)
	m.uint(packetSequenceFlags, sequenceNeeds)
	w.packet(m)
}

// process numbers are ours: those of several machines may be the same.
func (w *writer) process(i int, p *draw.Process) {
	w.uuid++
	var is, d message
	is.uint(processPID, clamp(i+1))
	is.text(processName, p.Name)
	for _, l := range p.Labels {
		is.text(processLabels, l)
	}
	d.uint(descriptorUUID, w.uuid)
	d.message(descriptorProcess, is) // the tracks right below one are shown by their names, whatever is said here
	d.uint(descriptorRank, clamp(i+1))
	w.descriptor(d)
	w.tracks(w.uuid, p.Tracks)
}

// tracks of one name below one are shown as one, with a line for each.
func (w *writer) tracks(parent uint64, tracks []*draw.Track) {
	for i, t := range tracks {
		lanes := t.Lanes()
		first := w.uuid + 1
		for n := range max(1, len(lanes)) {
			w.uuid++
			var d message
			d.uint(descriptorUUID, w.uuid)
			d.uint(descriptorParent, parent)
			d.text(descriptorName, t.Name)
			d.uint(descriptorRank, clamp(i+1))
			if len(t.Tracks) > 0 { // whichever of them stands for all has what is below
				d.uint(descriptorChildren, childrenExplicit)
			}
			w.descriptor(d)
			if n < len(lanes) {
				w.lanes = append(w.lanes, lane{w.uuid, lanes[n]})
			}
		}
		w.tracks(first, t.Tracks)
	}
}

func (w *writer) slice(track uint64, s *draw.Slice) {
	var e, told message
	e.uint(eventCategoryIDs, w.categories.id(s.Category, &told))
	e.uint(eventType, sliceBegin)
	e.uint(eventNameID, w.names.id(s.Name, &told))
	e.uint(eventTrack, track)
	for _, a := range s.Args {
		e.message(eventAnnotations, w.annotation(a, &told))
	}
	if s.Out != 0 {
		e.fixed(eventFlows, s.Out)
	}
	for _, id := range s.In {
		e.fixed(eventLastFlows, id)
	}
	w.event(s.From, e, told)
	for i := range s.Inner {
		w.slice(track, &s.Inner[i])
	}
	var end message
	end.uint(eventType, sliceEnd)
	end.uint(eventTrack, track)
	w.event(s.To, end, nil)
}

func (w *writer) event(at uint64, e, told message) {
	var m message
	m.uint(packetTimestamp, at)
	m.message(packetTrackEvent, e)
	if len(told) > 0 {
		m.message(packetInterned, told)
	}
	m.uint(packetSequenceFlags, sequenceNeeds)
	w.packet(m)
}

func (w *writer) annotation(a draw.Arg, told *message) message {
	var m message
	m.uint(annotationNameID, w.args.id(a.Name, told))
	switch v := a.Value.(type) {
	case string:
		m.uint(annotationTextID, w.texts.id(v, told))
	case bool:
		m.uint(annotationBool, protowire.EncodeBool(v))
	case int64:
		m.uint(annotationInt, uint64(v))
	case uint64:
		m.uint(annotationUint, v)
	}
	return m
}
