package summary

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"weft/internal/trace/clock"
)

// Text writes the report for people.
func (r *Report) Text(w io.Writer) error {
	out := &printer{w: w}
	out.findings(r)
	if r.RAS != nil && out.err == nil {
		out.err = r.RAS.Text(w)
	}
	for _, c := range r.Communicators {
		out.communicator(c)
	}
	out.links(r.Links)
	out.processes(r)
	for _, n := range r.Notes {
		out.line("note: %s", n)
	}
	return out.err
}

type printer struct {
	w   io.Writer
	err error
}

func (p *printer) line(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format+"\n", args...)
	}
}

// table writes columns that stand below one another.
func (p *printer) table(head string, rows []string) {
	if len(rows) == 0 {
		return
	}
	tab := tabwriter.NewWriter(p.w, 2, 8, 2, ' ', 0)
	for _, r := range append([]string{head}, rows...) {
		fmt.Fprintln(tab, "  "+r)
	}
	if err := tab.Flush(); p.err == nil {
		p.err = err
	}
}

func (p *printer) findings(r *Report) {
	for _, f := range r.Findings {
		p.line("%s: %s\n  %s", f.Kind, f.What, f.Evidence)
	}
	if len(r.Findings) == 0 {
		p.line("no rank and no link stands out")
	}
}

func (p *printer) communicator(c Communicator) {
	p.line("\ncommunicator %s: %s", c.Label, c.Ranked())
	var rows []string
	for _, o := range c.Operations {
		timed := o.TimedBy
		if timed == "" {
			timed = "nothing"
		}
		var rest []string
		if o.Captured > 0 {
			rest = append(rest, fmt.Sprintf("%d in graphs", o.Captured))
		}
		if o.Untimed > 0 {
			rest = append(rest, fmt.Sprintf("%d without an end", o.Untimed))
		}
		rows = append(rows, fmt.Sprintf("%s\t%s\t%s\t%d\t%s\t%s\t%s\t%s\t%s", o.Func, Size(o.Bytes), strings.Trim(o.Algorithm+" "+o.Protocol, " "),
			o.Count, nanos(int64(o.P50)), nanos(int64(o.P99)), Gigabytes(o.Bus), timed, strings.Join(rest, ", ")))
	}
	p.table("operation\tsize\talgorithm\tcount\tp50\tp99\tbus GB/s\ttimed by\t", rows)
	rows = nil
	for _, w := range c.Waits {
		rows = append(rows, fmt.Sprintf("%d\t%d\t%s\t%s\t%s\t%s\t%s", w.Rank, w.Steps, nanos(int64(w.GPU)), nanos(int64(w.Peer)), nanos(int64(w.Send)), nanos(int64(w.Receive)), nanos(int64(w.Flush))))
	}
	p.table("rank\tproxy steps\twaited for GPU\tfor the receiver\tfor sends\tfor data\tfor flushes", rows)
	if c.Skew != nil {
		p.skew(c.Skew)
	}
}

func (p *printer) skew(s *Skew) {
	how := map[string]string{"kernel": "kernels began", "call": "collectives were enqueued"}[s.By]
	bound := "at most " + nanos(int64(s.Bound))
	if s.Unknown {
		bound = "not known"
	}
	p.line("  when %s, from the first rank to the last: p50 %s, p99 %s, of %d collectives that all ranks have; error of the clocks %s", how, nanos(int64(s.P50)), nanos(int64(s.P99)), s.Compared, bound)
	var rows []string
	for _, l := range s.Ranks {
		rows = append(rows, fmt.Sprintf("%d\t%d\t%s\t%s", l.Rank, l.Last, nanos(l.P50), nanos(l.P99)))
	}
	p.table("rank\tlast\tbehind the others p50\tp99", rows)
}

func (p *printer) links(links []Link) {
	if len(links) == 0 {
		return
	}
	p.line("\nlinks, the slowest first")
	var rows []string
	for _, l := range links {
		slower, waited := "-", "-"
		if l.Slower > 0 {
			slower = fmt.Sprintf("%.2f", l.Slower)
		}
		if l.Steps > 0 {
			waited = nanos(int64(l.SendersWaited))
		}
		bound := nanos(int64(l.Bound))
		if l.Unknown {
			bound = "?"
		}
		rows = append(rows, fmt.Sprintf("%s\t%s\t%s %s-%s\t%d\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s", l.From, l.To, l.Network, l.FromDevice, l.ToDevice, l.Messages, l.Unmatched,
			Size(l.Bytes), nanos(l.P50), nanos(l.P99), bound, slower, nanos(int64(l.ReceiversWaited)), waited))
	}
	p.table("from\tto\tover\tmessages\tunmatched\tbytes\tp50\tp99\t+-\tx median\treceivers waited\tsenders waited", rows)
}

func (p *printer) processes(r *Report) {
	p.line("")
	var rows []string
	for _, q := range r.Processes {
		rows = append(rows, fmt.Sprintf("%s\t%s\t%d\t%s", q.Name, Runs(q.Ranks), q.Events, q.Lost()))
	}
	p.table("process\tranks\tevents\tlost", rows)
	for _, c := range r.Clocks {
		switch c.Basis {
		case string(clock.Messages):
			p.line("clock of %s: %s against the first machine's, by messages both ways, wrong by at most %s", c.Host, nanos(c.Offset), nanos(int64(c.Bound)))
		case string(clock.Wall):
			p.line("clock of %s: %s against the first machine's, by the realtime clocks, whose error is not known", c.Host, nanos(c.Offset))
		}
	}
}
