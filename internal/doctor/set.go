package doctor

import "strings"

// ShellQuote is a word for a POSIX shell that means the text as it is.
func ShellQuote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// with names a variable that mends the finding; "" is as if it were not set, to NCCL and to weft.
func (f Finding) with(name, value string) Finding {
	set := map[string]string{name: value}
	for n, v := range f.Set {
		set[n] = v
	}
	f.Set = set
	return f
}

// export makes setting it the remedy.
func (f Finding) export(name, value string) Finding {
	return f.with(name, value).mend("export %s=%s", name, ShellQuote(value))
}
