package frames

import (
	"fmt"
	"io"
	"strings"
)

// Text writes a paragraph for each part.
func (r *Report) Text(w io.Writer) error {
	var b strings.Builder
	for _, p := range r.Parts {
		fmt.Fprintf(&b, "%6d  %s, %d bytes\n", p.Offset, p.What, p.Bytes)
		wide := 0
		for _, f := range p.Fields {
			wide = max(wide, len(f.Name))
		}
		for _, f := range p.Fields {
			fmt.Fprintf(&b, "        %-*s  %s\n", wide, f.Name, f.Value)
		}
		if p.Error != "" {
			fmt.Fprintf(&b, "        cannot be read: %s\n", p.Error)
		}
	}
	if len(r.Parts) == 0 {
		b.WriteString("There are no bytes.\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}
