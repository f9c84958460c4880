package conform

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weft/abi"
	"weft/internal/build"
	"weft/internal/host"
	"weft/transport/record/format"
)

// profilers are the versions that chained profilers can have.
func profilers() (first, last int) {
	first, _ = host.FamilyProf.Versions()
	return first, build.ChainedNewest
}

// chained compiles a profiler of each version that writes down what it is told.
func chained(t *testing.T) map[int]string {
	t.Helper()
	libs := map[int]string{}
	first, last := profilers()
	for v := first; v <= last; v++ {
		lib, err := build.Chained(v)
		if err != nil {
			t.Fatal(err)
		}
		libs[v] = lib
	}
	return libs
}

// chainHost is a host of one version whose profilers are the given libraries, which write to files that begin with log.
func chainHost(t *testing.T, v int, libs []string, env ...string) (call func(slot string, a host.Args) *host.Reply, log string, h *host.Host) {
	t.Helper()
	log = filepath.Join(t.TempDir(), "told")
	call, h = profHost(t, v, append(env, "WEFT_PROFILER_CHAIN="+strings.Join(libs, ","), "CHAINED_LOG="+log)...)
	return call, log, h
}

func heard(t *testing.T, log string, v int) string {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("%s.v%d", log, v))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(text)
}

// calls is the first version whose collectives are below the call of the program.
const calls = 5

// TestChain has hosts of every version tell profilers of every version of a group, a collective, its proxy's operation and step.
func TestChain(t *testing.T) {
	libs := chained(t)
	first, last := profilers()
	_, newest := host.FamilyProf.Versions()
	for v := first; v <= newest; v++ {
		for from := first; from <= last; from += 4 {
			to := min(from+3, last)
			t.Run(fmt.Sprintf("host v%d, profilers v%d to v%d", v, from, to), func(t *testing.T) {
				t.Parallel()
				var list []string
				for p := from; p <= to; p++ {
					list = append(list, libs[p])
				}
				dir := t.TempDir()
				call, log, h := chainHost(t, v, list, "WEFT_PROFILE=trace", "WEFT_PROFILE_SIZE=4", "WEFT_PROFILE_DIR="+dir)
				begin := call("init", host.Args{"name", "world", "commId", 77, "nranks", 4, "rank", 2, "nnodes", 2})
				if v == 3 { // NCCL 2.26 would hang
					if begin.Int("mask") != 0 || heard(t, log, from) != "" {
						t.Errorf("mask %#x, told %q", begin.Int("mask"), heard(t, log, from))
					}
					return
				}
				// Our own record wants all but proxyctrl, and these want that.
				mask := int64(0xffff)
				if v < 7 { // as in TestProfile
					mask &^= abi.ProfileKernelPhase
				}
				if begin.Int("mask") != mask || begin.Ptr("ctx") == 0 {
					t.Fatalf("mask %#x, want %#x, context %v", begin.Int("mask"), mask, begin.Ptr("ctx"))
				}
				start := func(kind int, parent host.Ptr, more ...any) host.Ptr {
					return call("startEvent", append(host.Args{"ctx", begin.Ptr("ctx"), "type", 1 << kind, "parent", parent}, more...)).Ptr("handle")
				}
				for _, none := range []host.Ptr{0, 1, 0xfff0000000000001} { // of nobody
					call("stopEvent", host.Args{"handle", none})
					call("recordEventState", host.Args{"handle", none, "state", 9})
				}
				group := start(format.Group, 0)
				above, of := group, host.Ptr(0)
				if v >= calls {
					above, of = start(format.CollAPI, 0), group
				}
				coll := start(format.Coll, above, "seq", 5, "group", of)
				call("stopEvent", host.Args{"handle", coll})
				call("stopEvent", host.Args{"handle", group})
				op := start(format.ProxyOp, coll, "own", 1)
				step := start(format.ProxyStep, op)
				for _, state := range []int{9, 20} {
					call("recordEventState", host.Args{"handle", step, "state", state})
				}
				call("stopEvent", host.Args{"handle", step})
				if v <= 3 { // operations told what they had moved until their steps did
					call("recordEventState", host.Args{"handle", op, "state", 2, "bytes", 4096, "steps", 3})
				}
				call("stopEvent", host.Args{"handle", op})
				start(format.ProxyOp, 0xabc0) // PXN: the parent is another process's
				call("finalize", host.Args{"ctx", begin.Ptr("ctx")})
				h.Kill()
				for p := from; p <= to; p++ {
					of := "seq=5 func=AllReduce"
					switch {
					case p <= 3:
						of += " name=world hash=77"
					case p >= calls:
						of += " group=1"
					}
					who := "(no name) 0 0 0 0"
					if p >= 4 && v >= 4 {
						who = "world 77 2 4 2"
					}
					// What is above a collective: its group until the calls came, its call since. A profiler that does not know
					// calls has the group, one that does has nothing above it where the host does not.
					var lines []string
					n, up := 1, 1
					lines = append(lines, "init "+who, "start 1 type=0x1 below 0")
					switch {
					case p >= calls && v >= calls:
						n, up = 2, 2
						lines = append(lines, "start 2 type=0x200 below 0")
					case p >= calls:
						up = 0
					}
					lines = append(lines, fmt.Sprintf("start %d type=0x2 below %d %s", n+1, up, of), fmt.Sprintf("stop %d", n+1), "stop 1",
						fmt.Sprintf("start %d type=0x8 below %d", n+2, n+1), fmt.Sprintf("start %d type=0x10 below %d", n+3, n+2), fmt.Sprintf("state %d 9", n+3))
					if p >= 4 { // the state is of that version
						lines = append(lines, fmt.Sprintf("state %d 20", n+3))
					}
					lines = append(lines, fmt.Sprintf("stop %d", n+3))
					switch {
					case v <= 3 && p <= 3:
						lines = append(lines, fmt.Sprintf("state %d 2 bytes=4096 steps=3", n+2))
					case v <= 3:
						lines = append(lines, fmt.Sprintf("state %d 2", n+2))
					}
					lines = append(lines, fmt.Sprintf("stop %d", n+2), fmt.Sprintf("start %d type=0x8 below -1", n+4),
						fmt.Sprintf("finalize: %d events, %d open, 0 stopped twice", n+4, n))
					want := strings.Join(lines, "\n") + "\n"
					if got := heard(t, log, p); got != want {
						t.Errorf("v%d was told\n%s\nwant\n%s", p, got, want)
					}
				}
				p := recorded(t, dir).Processes[0]
				own := p.Events
				if v >= calls {
					own = own[1:] // the group, which is beside them
				}
				if len(own) != 5 || own[1].Up != own[0] || own[2].Up != own[1] || own[3].Up != own[2] || own[4].Parent != 0 {
					t.Errorf("our own record has %d events, or others above them", len(p.Events))
				}
			})
		}
	}
}

// TestChainOfSome has profilers that refuse, want little, are not there, come twice, are weft itself, or are too many.
func TestChainOfSome(t *testing.T) {
	libs := chained(t)
	lib, err := build.Library()
	if err != nil {
		t.Fatal(err)
	}
	first, last := profilers()
	for _, c := range []struct {
		name  string
		list  []string
		env   []string
		mask  int64
		says  string // in the log
		heard int    // starts that the newest profiler is told of, of a collective and a step
	}{
		{name: "it wants collectives alone", list: []string{libs[last]}, env: []string{"CHAINED_MASK=2"}, mask: 2, heard: 1},
		{name: "it wants what is below", list: []string{libs[last]}, env: []string{"CHAINED_MASK=0x80"}, mask: 0x80, heard: 2},
		{name: "it wants nothing", list: []string{libs[last]}, env: []string{"CHAINED_MASK=0"}, mask: 0},
		{name: "it wants what its version does not know", list: []string{libs[first], libs[last]}, env: []string{"CHAINED_MASK=0x4000"}, mask: 0x4000},
		{name: "it refuses", list: []string{libs[last]}, env: []string{fmt.Sprint("CHAINED_REFUSES=", last)}, mask: 0, says: "its init returned 3"},
		{name: "another refuses", list: []string{libs[first], libs[last]}, env: []string{fmt.Sprint("CHAINED_REFUSES=", first)}, mask: 0xffff, says: "its init returned 3", heard: 2},
		{name: "one is not there", list: []string{"/no/such.so", libs[last]}, mask: 0xffff, says: "/no/such.so is not told of events", heard: 2},
		{name: "a name", list: []string{"nobody", libs[last]}, mask: 0xffff, says: "libnccl-profiler-nobody.so", heard: 2},
		{name: "one is no profiler", list: []string{"libm.so.6", libs[last]}, mask: 0xffff, says: "it exports no profiler", heard: 2},
		{name: "twice", list: []string{libs[last], libs[last]}, mask: 0xffff, says: "it is in the list already", heard: 2},
		{name: "weft itself", list: []string{lib, libs[last]}, mask: 0xffff, says: "this is weft itself", heard: 2},
		{name: "five", list: []string{libs[last], libs[first], libs[first+1], libs[first+3], libs[first+4]}, mask: 0xffff, says: "4 profilers are the most", heard: 2},
		{name: "nothing but commas", list: []string{" ", ""}, mask: 0},
	} {
		if c.list[0] == build.Self {
			continue // the tables are inside the host: there is no file of weft's
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			call, log, h := chainHost(t, last, c.list, c.env...)
			begin := call("init", host.Args{"name", "world"})
			if begin.Int("mask") != c.mask {
				t.Errorf("mask %#x, want %#x", begin.Int("mask"), c.mask)
			}
			var handles []host.Ptr
			for _, kind := range []int{format.Coll, format.ProxyStep} {
				handles = append(handles, call("startEvent", host.Args{"ctx", begin.Ptr("ctx"), "type", 1 << kind}).Ptr("handle"))
			}
			for _, handle := range handles {
				call("stopEvent", host.Args{"handle", handle})
			}
			call("finalize", host.Args{"ctx", begin.Ptr("ctx")})
			var lines string
			for _, l := range h.Logs() {
				lines += l.Text + "\n"
			}
			if !strings.Contains(lines, c.says) {
				t.Errorf("the log lacks %q:\n%s", c.says, lines)
			}
			if got := strings.Count(heard(t, log, last), "start"); got != c.heard {
				t.Errorf("told of %d events, want %d:\n%s", got, c.heard, heard(t, log, last))
			}
		})
	}
}

// TestChainLater switches a profiler on when the host is at work: it hears of what begins from then on.
func TestChainLater(t *testing.T) {
	libs := chained(t)
	_, last := profilers()
	call, log, _ := chainHost(t, last, []string{libs[last]}, "CHAINED_MASK=0", "CHAINED_LATER=0x12")
	begin := call("init", host.Args{"name", "world"})
	if begin.Int("mask") != 0 {
		t.Errorf("mask %#x", begin.Int("mask"))
	}
	start := func() *host.Reply {
		return call("startEvent", host.Args{"ctx", begin.Ptr("ctx"), "type", 1 << format.Coll})
	}
	if r := start(); r.Ptr("handle") != 0 {
		t.Errorf("an event that nobody wants has the handle %v", r.Ptr("handle"))
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		r := start()
		if r.Int("mask") == 0x12 && r.Ptr("handle") != 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("mask %#x, handle %v", r.Int("mask"), r.Ptr("handle"))
		}
	}
	call("finalize", host.Args{"ctx", begin.Ptr("ctx")})
	if got := heard(t, log, last); !strings.Contains(got, "start 1 type=0x2") {
		t.Errorf("told\n%s", got)
	}
}
