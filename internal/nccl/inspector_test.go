package nccl

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"weft/internal/build"
	"weft/internal/trace"
	"weft/internal/trace/inspector"
	"weft/internal/trace/model"
)

// TestInspector has NVIDIA's inspector behind weft, and compares what it writes of a job with what weft makes of its own
// files: each line of the inspector's is one of weft's, with the same keys, order, types and values, but for when each of both
// was told of things.
func TestInspector(t *testing.T) {
	each(t, func(t *testing.T, r Release) {
		const ranks = 3
		theirs := filepath.Join(r.Dir, "libnccl-profiler-inspector.so")
		if _, err := os.Stat(theirs); err != nil {
			t.Skipf("%s brings no inspector, or one that writes less", r)
		}
		lib, err := build.Library()
		if err != nil {
			t.Fatal(err)
		}
		dir, out, own := t.TempDir(), t.TempDir(), t.TempDir()
		run := start(t, Job{Release: r, Network: tcp(t, r), Ranks: ranks, Env: []string{
			"WEFT_PROFILE=trace", "WEFT_PROFILE_DIR=" + dir, "NCCL_PROFILER_PLUGIN=" + lib, "WEFT_PROFILER_CHAIN=" + theirs,
			"NCCL_INSPECTOR_ENABLE=1", "NCCL_INSPECTOR_DUMP_DIR=" + out, "NCCL_INSPECTOR_DUMP_VERBOSE=1", "NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS=500",
		}}, "sizes", "ops=allreduce,alltoall,allgather,reducescatter,allreduce", "min=4K", "max=1M", "rounds=2")
		if err := run.Wait(); err != nil {
			t.Fatal(err)
		}
		files, bad, err := trace.Load([]string{dir})
		if err != nil || len(bad) != 0 || len(files) != ranks {
			t.Fatalf("%d files, %v %v", len(files), err, bad)
		}
		for _, p := range inspector.New(model.New(files), inspector.Options{MinBytes: inspector.MinBytes, Verbose: true}) {
			f, err := os.Create(filepath.Join(own, p.Name()))
			if err != nil {
				t.Fatal(err)
			}
			if err := p.Write(f); err != nil {
				t.Fatal(err)
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
		}
		names := entries(t, own)
		if had := entries(t, out); len(names) != ranks || !reflect.DeepEqual(names, had) {
			t.Fatalf("weft writes %q, the inspector %q", names, had)
		}
		for _, name := range names {
			compare(t, readLines(t, filepath.Join(out, name)), readLines(t, filepath.Join(own, name)))
		}
	})
}

func entries(t *testing.T, dir string) (names []string) {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names
}

// perf is a line of an inspector's file.
type perf struct {
	Header   map[string]any
	Metadata map[string]any
	Coll     map[string]any `json:"coll_perf"`
	P2p      map[string]any `json:"p2p_perf"`

	shape  string // the line with types for values
	fn     string
	number float64
	beyond bool // an operation on channels of which the inspector looks at others: it takes the first ones, as many as there are
}

var aValue = regexp.MustCompile(`:("[^"]*"|\d+\.\d+|\d+)`)

func typed(value string) string {
	switch {
	case value[1] == '"':
		return ":text"
	case strings.Contains(value, "."):
		return ":fraction"
	}
	return ":number"
}

// readLines has the operations by what tells them apart, without when the inspector and weft were told of them, and who
// has written the file.
func readLines(t *testing.T, path string) map[string]perf {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]perf{}
	for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		one := perf{shape: aValue.ReplaceAllStringFunc(line, typed)}
		if err := json.Unmarshal([]byte(line), &one); err != nil {
			t.Fatalf("%s: %v in %s", path, err, line)
		}
		kind, of := "coll", one.Coll
		if one.P2p != nil {
			kind, of = "p2p", one.P2p
		}
		for i, k := range of["event_trace_sn"].(map[string]any)["kernel_events"].([]any) {
			one.beyond = one.beyond || k.(map[string]any)["channel_id"] != float64(i)
		}
		one.fn, one.number = of[kind].(string), of[kind+"_sn"].(float64)
		delete(one.Metadata, "dump_timestamp_us")
		delete(one.Metadata, "git_rev")
		delete(of, "event_trace_sn")
		delete(of, "event_trace_ts")
		all[fmt.Sprint(one.Header["id"], " ", one.fn, " ", one.number)] = one
	}
	return all
}

// compare holds weft's operations to the inspector's.
func compare(t *testing.T, theirs, ours map[string]perf) {
	t.Helper()
	colls, sends := 0, 0
	last := map[string]float64{} // the inspector does not look again when a communicator ends
	for key, their := range theirs {
		our, is := ours[key]
		if !is {
			t.Errorf("weft lacks %s", key)
			continue
		}
		if our.shape != their.shape {
			t.Errorf("%s is written as\n%s, by the inspector\n%s", key, our.shape, their.shape)
		}
		for _, part := range [][2]any{{our.Header, their.Header}, {our.Metadata, their.Metadata}, {our.Coll, their.Coll}, {our.P2p, their.P2p}} {
			if !reflect.DeepEqual(part[0], part[1]) {
				t.Errorf("%s has %v, the inspector's %v", key, part[0], part[1])
			}
		}
		last[their.fn] = max(last[their.fn], their.number)
		if their.P2p != nil {
			sends++
		} else {
			colls++
		}
	}
	for key, our := range ours {
		if _, is := theirs[key]; !is && !our.beyond && our.number < last[our.fn] {
			t.Errorf("the inspector lacks %s", key)
		}
	}
	if colls == 0 || sends == 0 {
		t.Errorf("the inspector has written %d collectives, and %d sends and receives", colls, sends)
	}
}
