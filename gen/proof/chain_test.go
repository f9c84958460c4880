package proof

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"weft/gen/model"
	"weft/gen/parse"
)

// TestChain calls our own tables as those of other profilers: what a version has a place for comes back as it was given.
// Which fields those are is taken from the headers by their names alone.
func TestChain(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	unit, err := parse.NCCL(os.DirFS(filepath.Join(root, "headers")))
	if err != nil {
		t.Fatal(err)
	}
	const stem = "ncclProfilerEventDescr"
	newest := unit.Newest(model.Profiler)
	last := unit.Typedef(fmt.Sprintf("%s_v%d_t", stem, newest.Version))
	if last == nil {
		t.Fatalf("%s has no descriptor of its own", newest.Record.Name)
	}
	selects := selectors(t, root, stem)
	var tables, list, fields strings.Builder
	for _, table := range slices.Backward(unit.Tables) {
		if table.Family != model.Profiler {
			continue
		}
		fmt.Fprintf(&tables, "#include %q\nextern const %s %s;\n", table.Header, table.Record.Name, table.Symbol)
		fmt.Fprintf(&list, "&%s, ", table.Symbol)
		now := unit.Typedef(fmt.Sprintf("%s_v%d_t", stem, table.Version))
		if now == nil {
			t.Fatalf("%s has no descriptor of its own", table.Record.Name)
		}
		for _, m := range union(now.Type) {
			in := member(last.Type, m.Name)
			if in == nil {
				t.Fatalf("%s has no %s", last.Name, m.Name)
			}
			// What no rule selects is selected by its name.
			by := cmp.Or(selects[m.Name], "ncclProfile"+strings.ToUpper(m.Name[:1])+m.Name[1:])
			fmt.Fprintf(&fields, "\t\tcase %dull << 32 | (uint64_t)%s:\n", table.Version, by)
			for _, f := range m.Type.Record.Fields {
				if unset := table.Version == 4 && m.Name == "p2p" && f.Name == "nChannels"; unset { // no shim reads it
					continue
				}
				if g, _ := in.Type.Record.Field(f.Name); g != nil {
					fmt.Fprintf(&fields, "\t\t\tCHECK(seen.%[1]s.%[2]s == given.%[1]s.%[2]s);\n", m.Name, f.Name)
				}
			}
			fields.WriteString("\t\t\tbreak;\n")
		}
	}
	fmt.Fprintf(&tables, "static const void* const tables[] = {%s};\n", list.String())
	dir := t.TempDir()
	driver := read(t, "testdata/chain.c")
	write(t, filepath.Join(dir, "chain.c"), strings.NewReplacer("/* TABLES */\n", tables.String(), "/* FIELDS */\n", fields.String()).Replace(driver))
	write(t, filepath.Join(dir, "rest.c"), unrecorded(t, root, "chain.c"))
	sources, err := filepath.Glob(filepath.Join(root, "compat", "*.c"))
	if err != nil {
		t.Fatal(err)
	}
	sources = slices.DeleteFunc(sources, func(name string) bool {
		return !strings.Contains(name, "profiler") && filepath.Base(name) != "codes.c" && filepath.Base(name) != "chain.c"
	})
	args := []string{
		"-std=gnu11", "-O1", "-g", "-Wall", "-Wextra", "-Wno-unused-parameter", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined",
		"-I" + filepath.Join(root, "headers"), "-I" + filepath.Join(root, "plugin"), "-I" + filepath.Join(root, "transport/fastpath"),
		"-I" + filepath.Join(root, "guest"), "-I" + filepath.Join(root, "compat"),
		"-o", filepath.Join(dir, "chain"), filepath.Join(dir, "chain.c"), filepath.Join(dir, "rest.c"),
	}
	command(t, root, "gcc", append(args, sources...)...)
	out, err := exec.CommandContext(deadline(t, time.Minute), filepath.Join(dir, "chain")).CombinedOutput()
	if err != nil || !strings.HasSuffix(string(out), "ok\n") {
		t.Errorf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}

// union is the members of a descriptor's union.
func union(t *model.Type) []*model.Field {
	for _, f := range t.Record.Fields {
		if f.Name == "" {
			return f.Type.Record.Fields
		}
	}
	return nil
}

func member(t *model.Type, name string) *model.Field {
	for _, f := range union(t) {
		if f.Name == name {
			return f
		}
	}
	return nil
}

// selectors are the enumerators of a union's members, by the rules.
func selectors(t *testing.T, root, stem string) map[string]string {
	t.Helper()
	by := map[string]string{}
	for line := range strings.Lines(read(t, filepath.Join(root, "gen/rules/profiler.rules"))) {
		if w := strings.Fields(line); len(w) == 5 && w[0] == "select" && w[1] == stem {
			by[w[4]] = w[3]
		}
	}
	return by
}
