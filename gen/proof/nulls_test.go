package proof

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weft/gen/model"
	"weft/gen/parse"
)

// mayBeNull are the pointers that NCCL leaves NULL: a second witness beside gen/rules, taken from its source.
var mayBeNull = map[string]string{
	"net.init.config":                      "from v11 on: none is a configuration of defaults",
	"net.connect.config":                   "bootstrap over net, 2.26",
	"net.connect.sendDevComm":              "the probe for GPU memory, 2.19",
	"net.accept.recvDevComm":               "the probe for GPU memory, 2.19",
	"net.irecv.phandles":                   "bootstrap over net, 2.26 on",
	"net.test.size":                        "sends and flushes, up to table v4",
	"net.test.sizes":                       "sends and flushes",
	"collNet.test.size":                    "flushes",
	"profiler.init.commName":               "a communicator without a name",
	"profiler.recordEventState.eStateArgs": "states that have none",
}

// counts are the parameters that say how long arrays are, and the most that they may say.
var counts = map[string]int{"net.irecv.n": 8, "net.iflush.n": 8, "collNet.iallgather.nRecvParts": 64, "collNet.ireducescatter.nSendParts": 64}

// TestNulls gives every function of every table NULL for each pointer that it reads or writes through, and counts out of range:
// it is refused by the name of the parameter before anything of the core is reached, and what NCCL leaves NULL is not. The
// calls are made from the headers, so that a new table is tested as well.
func TestNulls(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	unit, err := parse.NCCL(os.DirFS(filepath.Join(root, "headers")))
	if err != nil {
		t.Fatal(err)
	}
	exported := read(t, filepath.Join(root, "lib/zz_exports.map"))
	var calls, tables strings.Builder
	headers, cases := map[string]bool{}, 0
	for _, table := range unit.Tables {
		if !strings.Contains(exported, " "+table.Symbol+";") {
			continue
		}
		headers[table.Header] = true
		fmt.Fprintf(&tables, "extern const %s %s;\n", table.Record.Name, table.Symbol)
		for _, f := range table.Record.Fields {
			if f.Type.IsFuncPtr() {
				cases += callsWithNulls(&calls, table, f)
			}
		}
	}
	if cases < 700 {
		t.Errorf("only %d calls", cases)
	}
	var include strings.Builder
	for h := range headers {
		fmt.Fprintf(&include, "#include \"%s\"\n", h)
	}
	dir := t.TempDir()
	driver := read(t, "testdata/nulls.c")
	write(t, filepath.Join(dir, "nulls.c"), strings.NewReplacer("/* HEADERS */\n", include.String(), "/* TABLES */\n", tables.String(), "/* CALLS */\n", calls.String()).Replace(driver))
	write(t, filepath.Join(dir, "core.c"), everyCore(t, root))
	sources, err := filepath.Glob(filepath.Join(root, "compat", "*.c"))
	if err != nil || len(sources) == 0 {
		t.Fatalf("compat/*.c: %v, %d files", err, len(sources))
	}
	args := []string{
		"-std=gnu11", "-O1", "-g", "-Wall", "-Wextra", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined",
		"-I" + filepath.Join(root, "headers"), "-I" + filepath.Join(root, "plugin"),
		"-I" + filepath.Join(root, "transport/fastpath"), "-I" + filepath.Join(root, "guest"), "-I" + filepath.Join(root, "compat"),
		"-o", filepath.Join(dir, "nulls"), filepath.Join(dir, "nulls.c"), filepath.Join(dir, "core.c"),
	}
	command(t, root, "gcc", append(args, sources...)...)
	out, err := exec.CommandContext(deadline(t, time.Minute), filepath.Join(dir, "nulls")).CombinedOutput()
	if err != nil || !strings.HasSuffix(string(out), "ok\n") {
		t.Errorf("%v\n%s", err, out)
	}
}

// callsWithNulls writes the calls of one function, each with one argument spoilt, and one with none.
func callsWithNulls(b *strings.Builder, table *model.Table, f *model.Field) int {
	params := f.Type.Elem.Func.Params
	name := func(i int) string { return fmt.Sprintf("%s.%s.%s", table.Family, f.Name, params[i].Name) }
	write := func(spoilt int, value, want string) {
		var args []string
		for i, q := range params {
			switch {
			case i == spoilt:
				args = append(args, value)
			case counts[name(i)] != 0:
				args = append(args, "1")
			case q.Type.Kind == model.Pointer && !q.Type.IsFuncPtr():
				args = append(args, "(void*)room")
			default:
				args = append(args, "0")
			}
		}
		what := "as it should be"
		if spoilt >= 0 {
			what = params[spoilt].Name + " " + value
		}
		fmt.Fprintf(b, "\tif (%[1]s.%[2]s) begin(\"%[1]s.%[2]s, %[3]s\"), end(%[1]s.%[2]s(%[4]s), %[5]s);\n", table.Symbol, f.Name, what, strings.Join(args, ", "), want)
	}
	write(-1, "", "NULL")
	n := 1
	for i, q := range params {
		value := q.Type.IsFuncPtr() || q.Type.IsPtrTo(model.Void) && q.Name != "handle"
		switch most := counts[name(i)]; {
		case most != 0:
			for _, v := range []int{-1, 0, most + 1, 1 << 30} {
				write(i, fmt.Sprint(v), fmt.Sprintf("%q", q.Name))
				n++
			}
		case q.Type.Kind != model.Pointer || value:
		case mayBeNull[name(i)] != "":
			write(i, "NULL", "NULL")
			n++
		default:
			write(i, "NULL", fmt.Sprintf("%q", q.Name))
			n++
		}
	}
	return n
}

// everyCore defines the core's functions: each says that it was reached, and that it is done.
func everyCore(t *testing.T, root string) string {
	t.Helper()
	var c strings.Builder
	c.WriteString("extern int reached;\n")
	fns := []string{"weft_isend", "weft_irecv", "weft_iflush", "weft_test"}
	for _, m := range slowPrototype.FindAllStringSubmatch(read(t, filepath.Join(root, "plugin/zz_slow.h")), -1) {
		if m[1] != "weft_blocking_deadline_ms" {
			fns = append(fns, m[1])
		}
	}
	for _, fn := range fns {
		c.WriteString("int " + fn + "(void) { reached++; return 0; }\n")
	}
	return c.String()
}
