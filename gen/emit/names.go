package emit

import (
	"fmt"
	"strings"
	"unicode"

	"weft/gen/model"
	"weft/gen/plan"
)

// goName turns a C name into an exported Go name: ncclNetProperties_v12_t is
// NetPropertiesV12, trafficClass is TrafficClass. Names in capitals stay.
func goName(c string) string {
	c = strings.TrimPrefix(strings.TrimPrefix(c, "struct "), "union ")
	if stem, v, ok := plan.Split(c); ok {
		return goName(stem) + fmt.Sprintf("V%d", v)
	}
	c = strings.TrimSuffix(c, "_t")
	if rest, ok := strings.CutPrefix(c, "nccl"); ok && rest != "" && unicode.IsUpper(rune(rest[0])) {
		c = rest
	}
	var b strings.Builder
	if strings.ToUpper(c) == c {
		return c
	}
	up := true
	for _, r := range c {
		if r == '_' {
			up = true
			continue
		}
		if up {
			r = unicode.ToUpper(r)
		}
		up = false
		b.WriteRune(r)
	}
	return b.String()
}

// lower is the family in file names.
func lower(f model.Family) string { return strings.ToLower(string(f)) }

// argsName names the struct of a function's arguments.
func argsName(c *plan.Core) string { return c.Family.Go() + goName(c.Slot) + "Args" }

// callName names a function in messages.
func callName(f model.Family, slot string) string {
	if f == model.Net {
		return slot
	}
	return string(f) + "." + slot
}

var goKeywords = map[string]bool{
	"break": true, "case": true, "chan": true, "const": true, "continue": true, "default": true, "defer": true,
	"else": true, "fallthrough": true, "for": true, "func": true, "go": true, "goto": true, "if": true, "import": true,
	"interface": true, "map": true, "package": true, "range": true, "return": true, "select": true, "struct": true,
	"switch": true, "type": true, "var": true,
	// what the body of an export uses
	"a": true, "rc": true, "r": true, "abi": true, "unsafe": true, "recover": true, "done": true, "recovered": true,
	"uintptr": true, "int32": true, "int64": true, "uint64": true, "uint32": true, "C": true,
}

// goParam guards a C parameter name that Go cannot use.
func goParam(name string) string {
	if goKeywords[name] {
		return name + "_"
	}
	return name
}
