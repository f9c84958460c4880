package info

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"weft/internal/doctor"
	"weft/internal/doctor/fixture"
	"weft/internal/doctor/machine"
	"weft/internal/golden"
	"weft/internal/info/env"
	"weft/internal/info/frames"
	"weft/internal/info/knobs"
	"weft/transport/wire"
)

// docs/info.md shows what is written, and has every field.
func TestDocs(t *testing.T) {
	path := filepath.Join("..", "..", "docs", "info.md")
	have, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := string(have)
	for name, text := range examples(t) {
		before, rest, found := strings.Cut(want, "<!-- example: "+name+" -->\n```\n")
		_, after, closed := strings.Cut(rest, "```\n")
		if !found || !closed {
			t.Fatalf("docs/info.md has no place for the example %s", name)
		}
		want = before + "<!-- example: " + name + " -->\n```\n" + text + "```\n" + after
	}
	before, _, found := strings.Cut(want, "<!-- fields -->\n")
	if !found {
		t.Fatal("docs/info.md has no place for the fields")
	}
	want = before + "<!-- fields -->\n" + tables()
	if *golden.Update {
		if err := os.WriteFile(path, []byte(want), 0o666); err != nil {
			t.Fatal(err)
		}
		have = []byte(want)
	}
	if d := cmp.Diff(want, string(have)); d != "" {
		t.Errorf("docs/info.md is stale; go test ./internal/info -update (-want +got):\n%s", d)
	}
}

func examples(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{"gpus": text(t, look(t, "roce"), GPUs)}
	device := look(t, "roce")
	if err := device.Only("mlx5_0"); err != nil {
		t.Fatal(err)
	}
	all["device"] = text(t, device, All)

	files := fixture.Machine(t, "../doctor/testdata/rules/WEFT-101.txtar", "broken")
	files["proc/self/environ"] = &fstest.MapFile{Data: []byte("NCCL_IB_TIMEOUT=99\nNCCL_IB_TC=106\nNCCL_IB_GID_IDNEX=3\n")}
	files["etc/nccl.conf"] = &fstest.MapFile{Data: []byte("NCCL_IB_TC=41\nNCCL_NET=IB\n")}
	m := machine.OpenFS(files)
	needs, err := env.New(m, "")
	if err != nil {
		t.Fatal(err)
	}
	needs.Weft = "weft VERSION"
	x, err := doctor.Examine(m, 0)
	if err != nil {
		t.Fatal(err)
	}
	h := wire.Handle{Token: wire.Token{1}, ListenID: 0x5c1d77e0, Addrs: []wire.Endpoint{{Addr: netip.MustParseAddr("10.1.0.7"), Prefix: 24, Port: 40123}}}.Named("node7", wire.HandleMax)
	b := h.Append(nil)
	for name, write := range map[string]func(*strings.Builder) error{
		"env":   func(b *strings.Builder) error { return needs.Text(b) },
		"knobs": func(b *strings.Builder) error { return knobs.New(x, false).Text(b) },
		"handle": func(s *strings.Builder) error {
			return frames.Decode(append(b, make([]byte, wire.HandleMax-len(b))...)).Text(s)
		},
	} {
		var s strings.Builder
		if err := write(&s); err != nil {
			t.Fatal(err)
		}
		all[name] = s.String()
	}
	return all
}

// tables are the fields of every report, one table each.
func tables() string {
	var b strings.Builder
	for _, r := range []struct {
		command string
		of      []any
	}{
		{"weft info --json", []any{Report{}, Device{}, Port{}, GID{}, TCP{}, Interface{}, GPU{}, Way{}}},
		{"weft info knobs --json", []any{knobs.Report{}, knobs.Knob{}}},
		{"weft info handle --json", []any{frames.Report{}, frames.Part{}, frames.Field{}}},
		{"weft env --format json", []any{env.Report{}, env.Variable{}}},
	} {
		fmt.Fprintf(&b, "\n### `%s`\n\n| of | field | meaning |\n|---|---|---|\n", r.command)
		for _, part := range r.of {
			for i := range reflect.TypeOf(part).NumField() {
				f := reflect.TypeOf(part).Field(i)
				name, rest, _ := strings.Cut(f.Tag.Get("json"), ",")
				if f.PkgPath != "" {
					continue
				}
				of := reflect.TypeOf(part).Name()
				fmt.Fprintf(&b, "| %s | `%s`%s | %s |\n", of, name, map[bool]string{true: ", may be absent"}[rest != ""], f.Tag.Get("doc"))
			}
		}
	}
	return b.String()
}

// Every field of a report has a name and a meaning.
func TestSchema(t *testing.T) {
	for _, part := range []any{Report{}, Device{}, Port{}, GID{}, TCP{}, Interface{}, GPU{}, Way{}, knobs.Report{}, knobs.Knob{}, frames.Report{}, frames.Part{}, frames.Field{}, env.Report{}, env.Variable{}} {
		for i := range reflect.TypeOf(part).NumField() {
			f := reflect.TypeOf(part).Field(i)
			if f.PkgPath == "" && (f.Tag.Get("json") == "" || f.Tag.Get("doc") == "") {
				t.Errorf("%T.%s has no name or no meaning", part, f.Name)
			}
		}
	}
}
