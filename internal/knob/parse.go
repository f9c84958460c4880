package knob

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Parse reads the table's knobs from settings, as if they were the environment.
func Parse(settings map[string]string) *Values {
	environ := make([]string, 0, len(settings))
	for name, value := range settings {
		environ = append(environ, name+"="+value)
	}
	slices.Sort(environ)
	return ParseEnv(
		func(name string) (string, bool) { v, ok := settings[name]; return v, ok },
		func() []string { return environ })
}

// ParseEnv reads every knob of the table through getenv, and looks through
// environ, entries of the form NAME=value, for names that nobody knows.
func ParseEnv(getenv func(name string) (string, bool), environ func() []string) *Values {
	v := Defaults()
	for id := range v.all {
		spec := &table[id]
		name := spec.Name
		text, _ := getenv(name)
		if text == "" && spec.Also != "" {
			name = spec.Also
			text, _ = getenv(name)
		}
		if text == "" { // NCCL too reads an empty value as unset
			continue
		}
		parsed, err := spec.parse(text)
		if err != nil {
			v.all[id].origin = Rejected
			v.problems = append(v.problems, fmt.Sprintf("%s=%s: %v; using the default %s",
				name, Printable(text), err, spec.DefaultText()))
			continue
		}
		parsed.origin, parsed.name = FromEnvironment, name
		v.all[id] = parsed
		if spec.Inert == "" {
			v.notes = append(v.notes, fmt.Sprintf("%s set by environment to %s", name, Printable(text)))
		} else {
			v.notes = append(v.notes, fmt.Sprintf("%s=%s is accepted and changes nothing here: %s", name, Printable(text), spec.Inert))
		}
	}
	for _, u := range unkept {
		if text, _ := getenv(u.name); text != "" {
			v.problems = append(v.problems, u.name+" "+u.why)
		}
	}
	v.problems = append(v.problems, unknown(environ())...)
	return v
}

func (s *Spec) parse(text string) (value, error) {
	switch s.Type {
	case Text:
		return value{text: text}, nil
	case Choice:
		if !slices.Contains(s.Choices, text) {
			return value{}, fmt.Errorf("must be %s", s.Legal())
		}
		return value{text: text}, nil
	case Bits:
		n, err := strconv.ParseUint(cNumber(text), 0, 64)
		if err != nil {
			return value{}, fmt.Errorf("must be %s", s.Legal())
		}
		return value{number: int64(n)}, nil
	case Ports:
		return s.parsePorts(text)
	case Switch:
		n, err := strconv.ParseInt(cNumber(text), 0, 64)
		if err != nil {
			return value{}, fmt.Errorf("must be %s", s.Legal())
		}
		return value{number: int64(min(uint64(n), 1))}, nil
	}
	n, err := strconv.ParseInt(cNumber(text), 0, 64)
	if err != nil || !s.allows(n) {
		return value{}, fmt.Errorf("must be %s", s.Legal())
	}
	return value{number: n}, nil
}

func (s *Spec) allows(n int64) bool {
	return s.Min <= n && n <= s.Max || slices.Contains(s.Special, n)
}

func (s *Spec) parsePorts(text string) (value, error) {
	low, high, isRange := strings.Cut(strings.TrimSpace(text), "-")
	if !isRange {
		high = low
	}
	a, err1 := strconv.ParseUint(low, 10, 16)
	b, err2 := strconv.ParseUint(high, 10, 16)
	if err1 != nil || err2 != nil || a == 0 || a > b {
		return value{}, fmt.Errorf("must be %s", s.Legal())
	}
	return value{number: int64(a), second: int64(b)}, nil
}

// cNumber trims what strtoll skips, and makes unreadable to strconv what Go
// takes for a number and C does not: 0o17, 0b11, 1_000.
func cNumber(text string) string {
	text = strings.TrimPrefix(strings.Trim(text, " \t\n\v\f\r"), "+")
	digits := strings.ToLower(strings.TrimPrefix(text, "-"))
	if strings.HasPrefix(digits, "0o") || strings.HasPrefix(digits, "0b") || strings.ContainsAny(digits, "_+-") {
		return "no number"
	}
	return text
}

// Legal says which values are.
func (s *Spec) Legal() string {
	switch s.Type {
	case Text:
		return "text"
	case Choice:
		return strings.Join(s.Choices, " or ")
	case Bits:
		return "a number of at most 64 bits"
	case Switch:
		return "0 (off) or another number (on)"
	case Ports:
		return "LOW-HIGH with 1 <= LOW <= HIGH <= 65535"
	}
	text := fmt.Sprintf("%d to %d", s.Min, s.Max)
	for _, n := range s.Special {
		text = fmt.Sprintf("%d or %s", n, text)
	}
	switch {
	case s.Type == Seconds:
		text += " seconds"
	case s.Unit != "":
		text += " " + s.Unit
	}
	return text
}

// DefaultText is the default as users write it.
func (s *Spec) DefaultText() string {
	switch s.Type {
	case Text, Choice, Ports:
		return "(unset)"
	case Bits:
		return fmt.Sprintf("%#x", uint64(s.Default))
	case Seconds:
		return fmt.Sprintf("%d s", s.Default)
	}
	if s.Unit != "" {
		return fmt.Sprintf("%d %s", s.Default, s.Unit)
	}
	return strconv.FormatInt(s.Default, 10)
}

// Printable keeps a hostile value from writing its own lines into the log.
func Printable(text string) string {
	const most = 200
	if len(text) > most {
		text = text[:most] + "..."
	}
	quoted := strconv.QuoteToASCII(text)
	if quoted == `"`+text+`"` && !strings.Contains(text, " ") {
		return text
	}
	return quoted
}
