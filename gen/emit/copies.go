package emit

import (
	"fmt"
	"strings"

	"weft/gen/plan"
)

// copyFunction writes the conversion of a struct. What is not copied is zero.
func copyFunction(c *plan.Copy) string {
	to, from := c.CurName, c.Old.String()
	if c.Lower {
		to, from = from, to
	}
	params := fmt.Sprintf("%s* to, const %s* from", to, from)
	if c.Selector != nil {
		params += ", " + c.Selector.Declare("selector")
	}
	var b strings.Builder
	fmt.Fprintf(&b, "static void %s(%s) {\n  memset(to, 0, sizeof *to);\n", c.Name, params)
	for _, s := range c.Steps {
		step(&b, "  ", s)
	}
	for _, s := range c.Steps { // after the counters were copied
		if s.Clamp != "" {
			fmt.Fprintf(&b, "  if (to->%s > %d) to->%s = %d;\n", s.Clamp, s.Len, s.Clamp, s.Len)
		}
	}
	b.WriteString("}\n")
	return b.String()
}

func step(b *strings.Builder, in string, s *plan.Step) {
	switch {
	case s.Cases != nil:
		fmt.Fprintf(b, "%sswitch (%s) {\n", in, s.On)
		for _, c := range s.Cases {
			for _, v := range c.Values {
				fmt.Fprintf(b, "%scase %s:\n", in, v)
			}
			for _, t := range c.Steps {
				step(b, in+"  ", t)
			}
			fmt.Fprintf(b, "%s  break;\n", in)
		}
		fmt.Fprintf(b, "%sdefault:\n%s  break;\n%s}\n", in, in, in)
	case s.Copy != nil:
		fmt.Fprintf(b, "%s%s(&to->%s, &from->%s);\n", in, s.Copy.Name, s.Dst, s.Src)
	case s.Len > 0:
		fmt.Fprintf(b, "%sfor (int i = 0; i < %d; i++) to->%s[i] = from->%s[i];\n", in, s.Len, s.Dst, s.Src)
	case s.CFunc != "" && s.Src == "":
		fmt.Fprintf(b, "%sto->%s = %s();\n", in, s.Dst, s.CFunc)
	case s.CFunc != "":
		fmt.Fprintf(b, "%sto->%s = %s(from->%s);\n", in, s.Dst, s.CFunc, s.Src)
	default:
		fmt.Fprintf(b, "%sto->%s = from->%s;\n", in, s.Dst, s.Src)
	}
}
