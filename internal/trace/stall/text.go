package stall

import (
	"bytes"
	"fmt"
	"io"
	"text/tabwriter"
)

// Text writes the report for people.
func (r *Report) Text(to io.Writer) error {
	w := new(bytes.Buffer)
	if len(r.Waits) == 0 {
		fmt.Fprintf(w, "nobody has waited for %s or longer\n", short(uint64(r.Least)))
	}
	for _, c := range r.Causes {
		switch c.Kind {
		case "process":
			fmt.Fprintf(w, "cause: %s, for which %s\n", c.What, wait(c.Waiting))
		default:
			fmt.Fprintf(w, "cause: %s\n", c.What)
		}
		for _, e := range c.Evidence {
			fmt.Fprintf(w, "  %s\n", e)
		}
	}
	if len(r.Waits) > 0 {
		fmt.Fprintln(w)
		tab := tabwriter.NewWriter(w, 2, 8, 2, ' ', 0)
		fmt.Fprintln(tab, "  who\twaits for\tto\tfor\tmessages\tover")
		for _, x := range r.Waits {
			what := map[string]string{NoReceive: "post a receive", NoSend: "send", Undelivered: "get what was sent"}[x.Why]
			if x.Uncertain {
				what += " (likely)"
			}
			over := x.Network
			if x.FromDevice != "" {
				over += fmt.Sprintf(", %s to %s", x.FromDevice, or(x.ToDevice))
			}
			fmt.Fprintf(tab, "  %s\t%s\t%s\t%s\t%d\t%s\n", x.From, x.To, what, short(x.Ns), x.Messages, over)
		}
		tab.Flush() // to a buffer: it cannot fail
	}
	for _, s := range r.Said {
		fmt.Fprintf(w, "%s said itself, %s ago: %s\n", s.Process, short(s.Ago), s.Text)
	}
	if r.RAS != nil {
		if len(r.Waits) > 0 {
			fmt.Fprintln(w)
		}
		_ = r.RAS.Text(w) // to a buffer: it cannot fail
	}
	for _, n := range r.Notes {
		fmt.Fprintf(w, "note: %s\n", n)
	}
	_, err := w.WriteTo(to)
	return err
}

func wait(n int) string {
	if n == 1 {
		return "one process waits"
	}
	return fmt.Sprintf("%d processes wait", n)
}
