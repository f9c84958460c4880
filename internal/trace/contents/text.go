package contents

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"weft/internal/trace"
)

// Text writes it for people.
func (f *File) Text(w io.Writer) error {
	tab := tabwriter.NewWriter(w, 2, 8, 2, ' ', 0)
	line := func(format string, args ...any) { fmt.Fprintf(tab, format+"\n", args...) }
	line("%s", f.Path)
	line("process\t%s, %s, file made %s", f.Process, f.Build, f.Made.Format(time.RFC3339))
	line("records\t%d within %v; %d chunks, taken %d times", f.Records, time.Duration(f.Span), f.Chunks, f.Turns)
	line("lost\t%s", f.lost())
	if f.Delayed > 0 {
		line("cores\tfor %.0f%% of the time a thread could run and had none", 100*f.Delayed)
	}
	for _, t := range f.Threads {
		line("thread\t%d\t%s\t%d records", t.TID, t.Name, t.Records)
	}
	for _, c := range f.Communicators {
		line("communicator\t%s", c)
	}
	for _, c := range f.Connections {
		line("connection\t%s", c)
	}
	for _, e := range f.Events {
		line("events\t%s\t%d%s%s%s", e.Type, e.Count, some(e.Open, "open"), some(e.Launch, "without an end"), some(e.Captured, "in graphs"))
	}
	for _, s := range f.Said {
		line("said\tafter %v\t%s", time.Duration(s.Ns).Round(time.Millisecond), s.Text)
	}
	for _, n := range f.Notes {
		line("note\t%s", n)
	}
	return tab.Flush()
}

func (f *File) lost() string {
	return trace.Loss{Overwritten: f.Overwritten, Refused: f.Refused, Torn: f.Torn, Unread: f.Unread, Unnamed: f.Unnamed}.String()
}

func some(n int, what string) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(", %d %s", n, what)
}

func (c Communicator) String() string {
	text := fmt.Sprintf("%d\trank %d", c.Number, c.Rank)
	if c.Ranks > 0 {
		text += fmt.Sprintf(" of %d on %d nodes", c.Ranks, c.Nodes)
	}
	switch {
	case c.Version == 0:
		return text + ": its first record is gone"
	case c.ID == 0:
		text += ": the host does not say which it is"
	default:
		text += fmt.Sprintf(", %#x %s", c.ID, c.Name)
	}
	text += fmt.Sprintf(", table v%d", c.Version)
	if c.Ended {
		text += ", destroyed"
	}
	return text
}

func (c Connection) String() string {
	way := "receives from"
	if c.Sends {
		way = "sends to"
	}
	return fmt.Sprintf("%#x\t%s %s over %s, %s\t%d messages, %d bytes%s%s", c.Number, way, c.Peer, c.Device, c.Network, c.Messages, c.Bytes, some(c.Open, "open"), some(c.Failed, "failed"))
}
