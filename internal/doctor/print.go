package doctor

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"weft/internal/report"
)

// Print writes a host for people: what there is, how each release looks for plugins, what is wrong, and the verdict.
func (h Host) Print(w io.Writer) {
	if len(h.Devices) > 0 {
		t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
		fmt.Fprintln(t, "DEVICE\tSTATE\tGb/s\tPCIe\tNUMA\tNETDEV\tMTU\tGID\tWHY")
		for _, d := range h.Devices {
			fmt.Fprintf(t, "%s\t%s\t%g\t%.0f\t%d\t%s\t%s\t%s\t%s\n", d.Name, d.State, d.Gbps, d.PCIe, d.NUMA, dash(d.NetDev), zero(d.MTU), dash(d.GID), d.Why)
		}
		t.Flush()
		fmt.Fprintln(w)
	}
	if len(h.Interfaces) > 0 {
		t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
		fmt.Fprintln(t, "INTERFACE\tUP\tMb/s\tMTU\tKIND\tADDRESSES\tTCP")
		for _, i := range h.Interfaces {
			used := "-"
			if i.Used {
				used = "used (" + h.TCP + ")"
			}
			fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%s\t%s\t%s\n", i.Name, map[bool]string{true: "yes", false: "no"}[i.Up], zero(i.Mbps), i.MTU, dash(i.Kind), dash(strings.Join(i.Addresses, " ")), used)
		}
		t.Flush()
		fmt.Fprintln(w)
	}
	for _, n := range h.NCCL {
		fmt.Fprintf(w, "NCCL %s: %s (%s)\n", dash(n.Version), n.Path, n.Owner)
	}
	for _, r := range h.Releases {
		r.print(w)
	}
	for _, f := range h.Findings {
		f.print(w)
	}
	for _, u := range h.Unseen {
		fmt.Fprintf(w, "\nnot seen: %s", u)
	}
	if len(h.Unseen) > 0 {
		fmt.Fprint(w, "\nroot sees more\n")
	}
	fmt.Fprintf(w, "\n%s\n", h.Sentence())
}

// PrintAcross writes what is wrong between hosts, and a line for each of them.
func (r Report) PrintAcross(w io.Writer) {
	for _, h := range r.Hosts {
		fmt.Fprintln(w, h.Sentence())
	}
	for _, u := range r.Unasked {
		fmt.Fprintf(w, "not asked: %s\n", u)
	}
	r.printPaths(w)
	for _, f := range r.Across {
		f.print(w)
	}
	fmt.Fprintf(w, "\n%s\n", r.Sentence())
}

// Sentence is the verdict of all hosts in one line.
func (r Report) Sentence() string {
	of := map[Severity]int{}
	for _, h := range r.Hosts {
		of[h.Verdict]++
	}
	name := map[Severity]string{OK: "OK", Advice: "OK", Slows: "SLOW", Breaks: "BROKEN"}[r.Verdict]
	all := len(r.Hosts) + len(r.Unasked)
	text := fmt.Sprintf("%s: of %d host%s %d are well, %d slow, %d broken", name, all, report.Plural(all), of[OK]+of[Advice], of[Slows], of[Breaks])
	if len(r.Unasked) > 0 {
		text += fmt.Sprintf(", %d not asked", len(r.Unasked))
	}
	if len(r.Across) > 0 {
		text += fmt.Sprintf("; %d finding%s between them", len(r.Across), report.Plural(len(r.Across)))
	}
	return text
}

func (r Row) print(w io.Writer) {
	fmt.Fprintf(w, "%s\n  network   %s\n", r.Releases, r.Net)
	for _, part := range []struct{ name, text string }{
		{"later     when a process's last communicator has ended: ", r.Next}, {"profiler  ", r.Profiler}, {"tuner     ", r.Tuner},
	} {
		if part.text != "" {
			fmt.Fprintf(w, "  %s%s\n", part.name, part.text)
		}
	}
}

func (f Finding) print(w io.Writer) {
	about := ""
	if f.Subject != "" {
		about = " [" + f.Subject + "]"
	}
	fmt.Fprintf(w, "\n%s %s: %s%s\n  seen      %s\n  so        %s\n  mend      %s\n", f.Code, f.Severity, f.Title, about, f.Evidence, f.Consequence, f.Remedy)
}

// Print writes what a rule is about.
func (r Rule) Print(w io.Writer) {
	fmt.Fprintf(w, "%s: %s\n  topic     %s\n  severity  %s\n  symptom   %s\n  so        %s\n", r.Code, r.Title, r.Topic, r.Severity, r.Symptom, r.Consequence)
	if r.Remedy != "" {
		fmt.Fprintf(w, "  mend      %s\n", r.Remedy)
	} else {
		fmt.Fprintf(w, "  mend      the finding names the command for what it has seen\n")
	}
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func zero(n int64) string {
	if n == 0 {
		return "-"
	}
	return number(n)
}
