package headers_test

import (
	"debug/dwarf"
	"debug/elf"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"weft/headers"
)

// newerVerbs is what our restatement has and an older rdma-core lacks, with
// the first release that has it; the slots of verbs_context are not listed, as
// it grows by design.
var newerVerbs = map[string]string{
	"ibv_qp_ex.wr_flush":            "45",
	"ibv_port_attr.active_speed_ex": "50",
	"IBV_EVENT_DEVICE_SPEED_CHANGE": "63",
	"ibv_query_port_speed":          "63",
}

var prototype = regexp.MustCompile(`(?m)^[a-z][\w* ]*[ *](_?ibv_\w+)\(`)

// Every struct, enum and function of verbs/ is the one of <infiniband/verbs.h>:
// the compiler's own description (DWARF) of both is compared.
func TestVerbsAgainstLibibverbs(t *testing.T) {
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		t.Fatalf("gcc is needed to build weft and to check its headers: %v", err)
	}
	dir := unpackVerbs(t)
	text, err := os.ReadFile(filepath.Join(dir, "verbs.h"))
	if err != nil {
		t.Fatal(err)
	}
	var functions []string
	for _, m := range prototype.FindAllStringSubmatch(string(text), -1) {
		functions = append(functions, m[1])
	}
	if len(functions) < 45 {
		t.Fatalf("only %d functions found in verbs.h", len(functions))
	}
	real := "#include <infiniband/verbs.h>\n"
	if _, err := object(t, gcc, real); err != nil {
		t.Skipf("no <infiniband/verbs.h> here (Debian: apt-get install libibverbs-dev); the restatement is checked only where it is: %v", err)
	}
	ours := describe(t, gcc, `#include "verbs.h"`+"\n", functions, "-I"+dir)
	theirs := describe(t, gcc, real, functions)
	compared := 0
	for _, name := range slices.Sorted(maps.Keys(ours)) {
		got, want := ours[name], theirs[name]
		if want == nil {
			if newerVerbs[name] == "" {
				t.Errorf("%s: not in <infiniband/verbs.h>", name)
			}
			continue
		}
		compared += compareType(t, name, got, want)
	}
	if compared < 600 {
		t.Errorf("only %d facts compared", compared)
	}
	t.Logf("%d members, values and types compared", compared)
}

// shape is what the compiler knows of one named thing.
type shape struct {
	text    string // of a function
	size    int64
	members map[string]string // member -> "offset type", or enumerator -> value
}

func compareType(t *testing.T, name string, got, want *shape) (n int) {
	n++
	if got.text != want.text {
		t.Errorf("%s:\nours   %s\ntheirs %s", name, got.text, want.text)
	}
	older := false
	for m, is := range got.members {
		was, ok := want.members[m]
		key := name + "." + m
		if got.size < 0 { // an enum: its enumerators are global
			key = m
		}
		switch {
		case !ok && (newerVerbs[key] != "" || name == "verbs_context" && strings.HasPrefix(is, "-")):
			older = true
		case !ok:
			t.Errorf("%s has no member %s", name, m)
		case is != was:
			t.Errorf("%s.%s:\nours   %s\ntheirs %s", name, m, is, was)
		}
		n++
	}
	if got.size >= 0 && !older && got.size != want.size && name != "verbs_context" {
		t.Errorf("%s: %d bytes, theirs has %d", name, got.size, want.size)
	}
	return n
}

func unpackVerbs(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	names, err := fs.Glob(headers.FS, "verbs/*.h")
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		b, err := fs.ReadFile(headers.FS, n)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(n)), b, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// object compiles with full debug information, unused types included.
func object(t *testing.T, gcc, source string, flags ...string) (string, error) {
	out := filepath.Join(t.TempDir(), "probe.o")
	args := append([]string{"-std=gnu11", "-g", "-fno-eliminate-unused-debug-types", "-w", "-c", "-x", "c", "-o", out}, flags...)
	cmd := exec.Command(gcc, append(args, "-")...)
	cmd.Stdin = strings.NewReader(source)
	if text, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, head(string(text), 3))
	}
	return out, nil
}

func describe(t *testing.T, gcc, include string, functions []string, flags ...string) map[string]*shape {
	t.Helper()
	source := include
	for _, f := range functions {
		probe := fmt.Sprintf("__typeof__(%s)* probe_%s;\n", f, f)
		if newerVerbs[f] != "" {
			if _, err := object(t, gcc, include+probe, flags...); err != nil {
				continue
			}
		}
		source += probe
	}
	name, err := object(t, gcc, source, flags...)
	if err != nil {
		t.Fatal(err)
	}
	f, err := elf.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	d, err := f.DWARF()
	if err != nil {
		t.Fatal(err)
	}
	return shapes(t, d)
}

func shapes(t *testing.T, d *dwarf.Data) map[string]*shape {
	all := map[string]*shape{}
	for r := d.Reader(); ; {
		e, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		if e == nil {
			return all
		}
		name, _ := e.Val(dwarf.AttrName).(string)
		switch e.Tag {
		case dwarf.TagVariable:
			if fn, ok := strings.CutPrefix(name, "probe_"); ok {
				typ, err := d.Type(e.Val(dwarf.AttrType).(dwarf.Offset))
				if err != nil {
					t.Fatal(err)
				}
				all[fn] = &shape{text: spell(typ, false)}
			}
		case dwarf.TagStructType, dwarf.TagUnionType, dwarf.TagEnumerationType:
			typ, err := d.Type(e.Offset)
			if err != nil {
				t.Fatal(err)
			}
			switch typ := typ.(type) {
			case *dwarf.StructType:
				if verbsName(name) && !typ.Incomplete {
					all[name] = record(typ)
				}
			case *dwarf.EnumType:
				enumerators(all, name, typ)
			}
		}
	}
}

func verbsName(name string) bool {
	return strings.HasPrefix(name, "ibv_") || strings.HasPrefix(name, "verbs_") || strings.HasPrefix(name, "_ibv_")
}

// enumerators of nameless enums are compared one by one.
func enumerators(all map[string]*shape, name string, e *dwarf.EnumType) {
	s := &shape{size: -1, members: map[string]string{}}
	for _, v := range e.Val {
		if !strings.HasPrefix(v.Name, "IBV_") {
			return
		}
		s.members[v.Name] = fmt.Sprint(v.Val)
		if name == "" {
			all[v.Name] = &shape{text: fmt.Sprint(v.Val)}
		}
	}
	if name != "" {
		all[name] = s
	}
}

func record(st *dwarf.StructType) *shape {
	s := &shape{size: st.ByteSize, members: map[string]string{}}
	base := int64(0)
	if st.StructName == "verbs_context" {
		for _, f := range st.Field {
			if f.Name == "context" {
				base = f.ByteOffset
			}
		}
	}
	flatten(s, st, "", -base)
	return s
}

// flatten lists members, those of nameless structs and unions under their own names.
func flatten(s *shape, st *dwarf.StructType, prefix string, base int64) {
	for _, f := range st.Field {
		if in, ok := f.Type.(*dwarf.StructType); ok && in.StructName == "" {
			p := prefix
			if f.Name != "" {
				p += f.Name + "."
			}
			flatten(s, in, p, base+f.ByteOffset)
			continue
		}
		s.members[prefix+f.Name] = fmt.Sprintf("%d %s", base+f.ByteOffset, spell(f.Type, false))
	}
}

// spell writes a type so that equal layouts read equally: integers by size and
// sign, whatever they are called.
func spell(t dwarf.Type, inner bool) string {
	switch t := t.(type) {
	case *dwarf.TypedefType:
		if strings.HasPrefix(t.Name, "pthread_") {
			return t.Name
		}
		return spell(t.Type, inner)
	case *dwarf.QualType:
		return t.Qual + " " + spell(t.Type, inner)
	case *dwarf.PtrType:
		return "*" + spell(t.Type, true)
	case *dwarf.ArrayType:
		return fmt.Sprintf("[%d]%s", t.Count, spell(t.Type, inner))
	case *dwarf.StructType:
		return t.Kind + " " + t.StructName
	case *dwarf.EnumType:
		return "enum " + t.EnumName
	case *dwarf.FuncType:
		var p []string
		for _, a := range t.ParamType {
			p = append(p, spell(a, true))
		}
		if t.ReturnType == nil {
			return "func(" + strings.Join(p, ", ") + ")"
		}
		return "func(" + strings.Join(p, ", ") + ") " + spell(t.ReturnType, true)
	case *dwarf.UintType, *dwarf.UcharType:
		return fmt.Sprintf("uint%d", 8*t.Size())
	case *dwarf.IntType:
		return fmt.Sprintf("int%d", 8*t.Size())
	}
	return t.String()
}
