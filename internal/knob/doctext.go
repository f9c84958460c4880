package knob

import (
	"fmt"
	"strings"
)

// Markdown is the whole text of docs/knobs.md.
func Markdown() string {
	var b strings.Builder
	b.WriteString(intro)
	for _, s := range table {
		fmt.Fprintf(&b, "\n## `%s`\n\n", s.Name)
		fmt.Fprintf(&b, "%s, default %s", s.Type, s.defaultText())
		if s.Type != Text {
			fmt.Fprintf(&b, "; legal: %s", s.rangeText())
		}
		b.WriteString("\n\n" + s.Doc)
		if s.Inert != "" {
			fmt.Fprintf(&b, " Has no effect here: %s; one INFO line says so.", s.Inert)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

const intro = `# Knobs

Generated from the table in internal/knob by ` + "`go test ./internal/knob -update`" + `; a test compares.

weft reads these environment variables once, when NCCL first initialises it. NCCL's names keep NCCL's
meaning, grammar and defaults; weft's own begin with ` + "`WEFT_`" + `. Settings in ` + "`nccl.conf`" + ` files count too: NCCL
puts them into the environment.

Numbers are read as C reads them: ` + "`16`, `0x10` and `020`" + ` are the same. A value that is not a number, or
outside its range, is a warning that names the value, the range and the default that is used instead.
(NCCL itself takes 0 for a text that is no number, silently: the one deliberate difference.) An empty value
counts as unset. An unknown ` + "`WEFT_`" + ` name is a warning that names the nearest known one.

Every value that the environment sets is one INFO line of subsystem ENV (NCCL_DEBUG=INFO, NCCL_DEBUG_SUBSYS=ENV).
`
