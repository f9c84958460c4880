package env

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"

	"weft/internal/doctor"
)

// Formats are the forms in which variables are written.
var Formats = []string{"sh", "docker", "slurm", "json"}

// Text is for a shell.
func (r *Report) Text(w io.Writer) error { return r.Write(w, "sh") }

// Write writes the report in a form: sh for eval in a POSIX shell, docker for --env-file of docker and podman, slurm for the output
// of a TaskProlog, json.
func (r *Report) Write(w io.Writer, format string) error {
	var b strings.Builder
	switch format {
	case "sh":
		r.shell(&b)
	case "docker":
		if err := r.lines(&b, "# ", "%s=%s\n"); err != nil {
			return err
		}
	case "slurm":
		if err := r.lines(&b, "", "export %s=%s\n"); err != nil {
			return err
		}
	case "json":
		e := json.NewEncoder(&b)
		e.SetIndent("", "  ")
		if err := e.Encode(r); err != nil {
			return err
		}
	default:
		return fmt.Errorf("there is no format %q: it is one of %s", format, strings.Join(Formats, ", "))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (r *Report) shell(b *strings.Builder) {
	r.head(b, "# ")
	for _, v := range r.Variables {
		comment(b, "# ", v.says())
		fmt.Fprintf(b, "export %s=%s\n", v.Name, doctor.ShellQuote(v.Value))
	}
	r.foot(b, "# ")
}

// lines are for readers that take a value as it stands up to the end of its line. Without a mark there are no comments.
func (r *Report) lines(b *strings.Builder, mark, form string) error {
	r.head(b, mark)
	for _, v := range r.Variables {
		if strings.ContainsAny(v.Value, "\n\r\x00") {
			return fmt.Errorf("%s=%q has more than one line, which this format cannot hold: sh can", v.Name, v.Value)
		}
		comment(b, mark, v.says())
		fmt.Fprintf(b, form, v.Name, v.Value)
	}
	r.foot(b, mark)
	return nil
}

func (r *Report) head(b *strings.Builder, mark string) {
	comment(b, mark, fmt.Sprintf("what %s needs, as %s sees it", r.Host, r.Weft))
}

func (r *Report) foot(b *strings.Builder, mark string) {
	if r.Missing != "" {
		comment(b, mark, "no NCCL will find weft: "+r.Missing)
	}
	for _, l := range r.Left {
		comment(b, mark, "no variable mends "+l+" (weft doctor)")
	}
}

func (v *Variable) says() string {
	switch {
	case v.Same:
		return v.Why + " (set so already)"
	case v.Was != "" && !strings.Contains(v.Why, v.Was):
		return v.Why + "; it was " + v.Was
	}
	return v.Why
}

// comment is one line, whatever is in it: names and values of the machine must not become a command.
func comment(b *strings.Builder, mark, text string) {
	if mark == "" {
		return
	}
	text = strings.Map(func(c rune) rune {
		if unicode.IsControl(c) || c == '\u2028' || c == '\u2029' || c == unicode.ReplacementChar {
			return ' '
		}
		return c
	}, text)
	b.WriteString(mark + text + "\n")
}
