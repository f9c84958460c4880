package headers_test

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"weft/headers"
	"weft/headers/facts"
)

// compiler is one language that plugins and hosts are written in.
type compiler struct {
	name, command string
	args          []string
	required      bool
}

var compilers = []compiler{
	{"C", "gcc", []string{"-std=gnu11", "-x", "c"}, true},
	{"C++", "g++", []string{"-std=c++17", "-x", "c++"}, false},
}

func (c compiler) check(t *testing.T, dir, source string) {
	t.Helper()
	if _, err := exec.LookPath(c.command); err != nil {
		if c.required {
			t.Fatalf("%s is needed to build weft and to check its headers: %v", c.command, err)
		}
		t.Skipf("no %s: the headers are not checked as %s", c.command, c.name)
	}
	args := append([]string{"-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only", "-I" + dir}, c.args...)
	cmd := exec.Command(c.command, append(args, "-")...)
	cmd.Stdin = strings.NewReader(source)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%s: %v\n%s", c.command, err, head(string(out), 40))
	}
}

func head(s string, lines int) string {
	l := strings.SplitAfterN(s, "\n", lines+1)
	if len(l) > lines {
		l = append(l[:lines], "...\n")
	}
	return strings.Join(l, "")
}

// unpack writes the embedded headers to a folder, and lists them.
func unpack(t *testing.T) (dir string, names []string) {
	t.Helper()
	dir = t.TempDir()
	names, err := fs.Glob(headers.FS, "nccl/*.h")
	if err != nil {
		t.Fatal(err)
	}
	for i, n := range names {
		b, err := fs.ReadFile(headers.FS, n)
		if err != nil {
			t.Fatal(err)
		}
		names[i] = filepath.Base(n)
		if err := os.WriteFile(filepath.Join(dir, names[i]), b, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir, names
}

// Each header stands alone, in C and in C++, without a warning.
func TestHeadersStandAlone(t *testing.T) {
	dir, names := unpack(t)
	for _, c := range compilers {
		t.Run(c.name, func(t *testing.T) {
			for _, n := range names {
				c.check(t, dir, fmt.Sprintf("#include %q\n", n))
			}
		})
	}
}

// The compiler lays every type out as it was measured in NCCL's own headers.
func TestHeadersAgainstFacts(t *testing.T) {
	dir, names := unpack(t)
	var includes strings.Builder
	for _, n := range names {
		fmt.Fprintf(&includes, "#include %q\n", n)
	}
	types, err := facts.Types(headers.FS)
	if err != nil {
		t.Fatal(err)
	}
	enums, err := facts.Enums(headers.FS)
	if err != nil {
		t.Fatal(err)
	}
	macros, err := facts.Macros(headers.FS)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range compilers {
		t.Run(c.name, func(t *testing.T) {
			a := &asserter{cxx: c.name == "C++", members: map[string][]facts.Member{}}
			for _, typ := range types {
				a.members[typ.Type] = typ.Members
				a.layout(typ)
			}
			for _, e := range enums {
				for name, v := range e.Values {
					a.that(fmt.Sprintf("%s == %d", name, v))
				}
			}
			for _, m := range macros {
				a.that(fmt.Sprintf("%s == %d", m.Macro, m.Value))
			}
			if a.n < 1000 {
				t.Fatalf("only %d assertions: are the facts complete?", a.n)
			}
			t.Logf("%d assertions", a.n)
			c.check(t, dir, includes.String()+"#include <stddef.h>\n"+a.preamble()+a.b.String())
		})
	}
}

// asserter writes compile-time assertions.
type asserter struct {
	cxx     bool
	b       strings.Builder
	n       int
	members map[string][]facts.Member
}

func (a *asserter) preamble() string {
	if a.cxx {
		return "#include <type_traits>\n"
	}
	return ""
}

func (a *asserter) that(expr string) {
	a.n++
	assert := "_Static_assert"
	if a.cxx {
		assert = "static_assert"
	}
	fmt.Fprintf(&a.b, "%s(%s, %q);\n", assert, expr, expr)
}

func (a *asserter) same(x, y string) {
	if a.cxx {
		a.that(fmt.Sprintf("std::is_same<%s, %s>::value", x, y))
	} else {
		a.that(fmt.Sprintf("__builtin_types_compatible_p(%s, %s)", x, y))
	}
}

func (a *asserter) layout(t facts.Type) {
	a.that(fmt.Sprintf("sizeof(%s) == %d", t.Type, t.Size))
	members := t.Members
	if t.Alias != "" {
		a.same(t.Type, t.Alias)
		members = a.members[t.Alias]
	}
	for _, m := range members {
		at := fmt.Sprintf("((%s*)0)->%s", t.Type, m.Member)
		a.that(fmt.Sprintf("offsetof(%s, %s) == %d", t.Type, m.Member, m.Offset))
		a.that(fmt.Sprintf("sizeof(%s) == %d", at, m.Size))
		switch {
		case m.Type == "struct" || m.Type == "union":
		case !a.cxx:
			a.same("__typeof__("+at+")", m.Type)
		case !strings.Contains(m.Member, "."):
			a.same(fmt.Sprintf("decltype(%s::%s)", t.Type, m.Member), m.Type)
		}
	}
}
