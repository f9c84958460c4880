package knob

import (
	"fmt"
	"strings"
)

// Markdown is the whole text of docs/knobs.md.
func Markdown() string {
	var b strings.Builder
	b.WriteString(intro)
	first(&b)
	glance(&b)
	for _, part := range []struct {
		title, theirs string
		rows          map[ID]Spec
	}{
		{"NCCL's sockets", "NCCL's sockets", socketRows},
		{"net_ib", "net_ib", ibRows},
		{"net_ib: moving to another port", "net_ib", resiliencyRows},
		{"weft's own", "", ownRows},
	} {
		fmt.Fprintf(&b, "\n## %s\n", part.title)
		for id := range table {
			if s, ok := part.rows[ID(id)]; ok {
				s.write(&b, part.theirs)
			}
		}
	}
	for _, f := range foreigns {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n| variable | default, meaning | weft's counterpart |\n|---|---|---|\n", f.reader, f.intro)
		for _, n := range f.names {
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", strings.ReplaceAll(n.name, ", ", "`, `"), n.meaning, n.ours)
		}
	}
	return b.String()
}

// tasks are what people set a knob for.
var tasks = []struct {
	id   ID
	what string
}{
	{SocketIfname, "TCP and NCCL's own bootstrap take a wrong interface: name the right ones"},
	{IBHCA, "RDMA takes a wrong card or port: name the right ones, or with `^` the wrong ones"},
	{IBDisable, "is RDMA at fault? `1` has everything go over TCP, to compare"},
	{Require, "a job that must not fall back to TCP: `rdma` fails instead, and says why"},
	{Profile, "a job hangs or is slow: `stall`, `metrics` and `trace` tell why"},
	{IBTC, "the fabric treats RoCE well in one class of traffic only: its DSCP x 4"},
	{IBQPsPerConnection, "a bond or equal paths of a fabric carry half: several queue pairs spread over them"},
	{PortRange, "a firewall between the hosts: the ports that it lets through"},
	{Timeout, "a peer that is gone should be noticed sooner, or a slow host needs longer"},
	{IBGIDIndex, "leave it unset: weft chooses for each pair of ports. A script that sets it is the usual cause of a wrong GID"},
}

// first lists those that matter most.
func first(b *strings.Builder) {
	b.WriteString("\n## The ten that matter first\n\nNone has to be set: `weft env` prints what a machine needs, `NCCL_NET_PLUGIN=weft` above all.\n\n| variable | what for |\n|---|---|\n")
	for _, t := range tasks {
		name := table[t.id].Name
		fmt.Fprintf(b, "| [`%s`](#%s) | %s |\n", name, strings.ToLower(name), t.what)
	}
}

// glance lists all knobs in a line each.
func glance(b *strings.Builder) {
	b.WriteString("\n## At a glance\n\n| variable | default | legal | beside NCCL's |\n|---|---|---|---|\n")
	for i := range table {
		s, beside := &table[i], "the same"
		switch {
		case s.Inert != "":
			beside = "changes nothing here"
		case s.Theirs == "":
			beside = "weft's own"
		case s.Differs != "":
			beside = "differs, see below"
		}
		fmt.Fprintf(b, "| [`%s`](#%s) | %s | %s | %s |\n", s.Name, strings.ToLower(s.Name), s.DefaultText(), s.Legal(), beside)
	}
}

// write is one row: what weft makes of it, what the other does, the difference.
func (s *Spec) write(b *strings.Builder, theirs string) {
	fmt.Fprintf(b, "\n### `%s`\n\n%s, default %s", s.Name, s.Type, s.DefaultText())
	if s.Type != Text {
		fmt.Fprintf(b, "; legal: %s", s.Legal())
	}
	fmt.Fprintf(b, "\n\n- weft: %s", s.Doc)
	if s.Inert != "" {
		fmt.Fprintf(b, " Changes nothing: %s. One INFO line says so.", s.Inert)
	}
	if theirs != "" {
		differs := s.Differs
		if differs == "" {
			differs = "none."
		}
		fmt.Fprintf(b, "\n- %s: %s\n- Difference: %s", theirs, s.Theirs, differs)
	}
	b.WriteByte('\n')
}

const intro = `# Knobs

Generated from the table in internal/knob by ` + "`go test ./internal/knob -update`" + `; a test compares.

weft reads these environment variables once, when NCCL first initialises it. NCCL's names keep NCCL's
meaning, grammar and defaults, except where a difference is named; weft's own begin with ` + "`WEFT_`" + `. Settings in
` + "`nccl.conf`" + ` files count too: NCCL puts them into the environment. At the end stand the variables of the network
that others read.

Numbers are read as C reads them: ` + "`16`, `0x10` and `020`" + ` are the same. A value that is not a number, or
outside its range, is a warning that names the value, the range and the default that is used instead.
(NCCL itself takes 0 for a text that is no number, silently.) An empty value counts as unset. An unknown
` + "`WEFT_`" + ` name is a warning that names the nearest known one, and so is an ` + "`NCCL_`" + ` name that differs from one of these in a letter or two.

Every value that the environment sets is one INFO line of subsystem ENV (NCCL_DEBUG=INFO, NCCL_DEBUG_SUBSYS=ENV).
`
