package proof

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// invention is what a made-up release adds to the headers before it.
type invention struct {
	Net, Profiler, Tuner int // versions of its tables; that of collNet is net's

	// What is new in the net table, and in the properties of devices.
	Function string
	Property string
	Slot     string // function that gains a parameter
	Param    string

	CollFunction, CollSlot string
	ProfFunction, ProfSlot string
	TuneFunction, TuneSlot string
	Member, Event, State   string // of the profiler's events
}

func (in *invention) String() string {
	return fmt.Sprintf("net v%d: function %s, property %s, %s gains %s; collNet: function %s, a parameter of %s; profiler v%d: function %s, a parameter of %s, member %s, event %s, state %s; tuner v%d: function %s, a parameter of %s",
		in.Net, in.Function, in.Property, in.Slot, in.Param, in.CollFunction, in.CollSlot, in.Profiler, in.ProfFunction, in.ProfSlot, in.Member, in.Event, in.State, in.Tuner, in.TuneFunction, in.TuneSlot)
}

// newRand draws its seed and prints it, so that a failure can be repeated.
func newRand(t *testing.T, seed uint64) *rand.Rand {
	t.Helper()
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("seed %d (repeat with -seed=%d)", seed, seed)
	return rand.New(rand.NewPCG(seed, 1))
}

// word makes up a name that no header has.
func word(r *rand.Rand) string {
	var b strings.Builder
	for range 4 {
		b.WriteByte("bdgkmpvz"[r.IntN(8)])
		b.WriteByte("aeiou"[r.IntN(5)])
	}
	return b.String()
}

// release writes the headers of a made-up release beside those in a folder:
// what it adds to the newest there stands at places drawn by r.
func release(t *testing.T, r *rand.Rand, dir string) *invention {
	t.Helper()
	net, prof, tune := newest(t, dir, "net"), newest(t, dir, "profiler"), newest(t, dir, "tuner")
	in := &invention{Net: net + 1, Profiler: prof + 1, Tuner: tune + 1}
	write(t, header(dir, "net", net+1), in.networks(t, r, renumbered(read(t, header(dir, "net", net)), net)))
	write(t, header(dir, "profiler", prof+1), in.profiler(t, r, renumbered(read(t, header(dir, "profiler", prof)), prof)))
	write(t, header(dir, "tuner", tune+1), in.tuner(t, r, renumbered(read(t, header(dir, "tuner", tune)), tune)))
	events := filepath.Join(dir, "profiler_event.h")
	write(t, events, in.events(t, r, read(t, events)))
	t.Log(in)
	return in
}

func header(dir, stem string, version int) string {
	return filepath.Join(dir, fmt.Sprintf("%s_v%d.h", stem, version))
}

// renumbered makes a header that of the next version. Types that it takes from
// other headers keep theirs.
func renumbered(text string, version int) string {
	from, to := fmt.Sprint(version), fmt.Sprint(version+1)
	own := regexp.MustCompile(`(?m)(?:^\} |typedef \w+ )(\w+)_v` + from + `_t;`)
	for _, m := range own.FindAllStringSubmatch(text, -1) {
		text = strings.ReplaceAll(text, m[1]+"_v"+from+"_t", m[1]+"_v"+to+"_t")
	}
	return strings.NewReplacer("_V"+from, "_V"+to, "Plugin_v"+from, "Plugin_v"+to, "ncclProfiler_v"+from+" ", "ncclProfiler_v"+to+" ").Replace(text)
}

func typ(r *rand.Rand) string {
	return []string{"int", "size_t", "uint64_t", "float", "int16_t"}[r.IntN(5)]
}

func (in *invention) networks(t *testing.T, r *rand.Rand, text string) string {
	in.Property = word(r)
	if name := fmt.Sprintf("ncclNetProperties_v%d_t", in.Net); strings.Contains(text, "} "+name+";") {
		text = within(t, text, name, func(body string) string {
			lines := strings.SplitAfter(body, "\n")
			return strings.Join(insert(lines, 1+r.IntN(len(lines)-2), "  "+typ(r)+" "+in.Property+";\n"), "")
		})
	}
	text = within(t, text, fmt.Sprintf("ncclNet_v%d_t", in.Net), func(body string) string {
		body, in.Function, in.Slot, in.Param = grown(r, body, "comm")
		return body
	})
	return within(t, text, fmt.Sprintf("ncclCollNet_v%d_t", in.Net), func(body string) string {
		body, in.CollFunction, in.CollSlot, _ = grown(r, body, "collComm")
		return body
	})
}

func (in *invention) profiler(t *testing.T, r *rand.Rand, text string) string {
	in.Member = word(r)
	text = within(t, text, fmt.Sprintf("ncclProfilerEventDescr_v%d_t", in.Profiler), func(body string) string {
		end := strings.LastIndex(body, "  };\n")
		body = body[:end] + "    struct {\n      uint32_t " + word(r) + ";\n      const char* " + word(r) + ";\n    } " + in.Member + ";\n" + body[end:]
		return strings.Replace(body, "  union {\n", "  uint64_t "+word(r)+";\n  union {\n", 1)
	})
	return within(t, text, fmt.Sprintf("ncclProfiler_v%d_t", in.Profiler), func(body string) string {
		body, in.ProfFunction, in.ProfSlot, _ = grown(r, body, "eHandle")
		return body
	})
}

func (in *invention) tuner(t *testing.T, r *rand.Rand, text string) string {
	return within(t, text, fmt.Sprintf("ncclTuner_v%d_t", in.Tuner), func(body string) string {
		body, in.TuneFunction, in.TuneSlot, _ = grown(r, body, "context")
		return body
	})
}

var (
	eventBits  = regexp.MustCompile(`ncclProfile\w+ = (?:1 << (\d+)|\d+)\n\};`)
	eventState = regexp.MustCompile(`ncclProfiler\w+ = (\d+)\n\} ncclProfilerEventState_t;`)
)

// events adds a kind of events, which is called as its member is, and a state.
func (in *invention) events(t *testing.T, r *rand.Rand, text string) string {
	t.Helper()
	in.Event, in.State = "ncclProfile"+strings.ToUpper(in.Member[:1])+in.Member[1:], "ncclProfiler"+word(r)
	if !eventBits.MatchString(text) || !eventState.MatchString(text) {
		t.Fatal("profiler_event.h does not end its lists as it did")
	}
	text = strings.Replace(text, "\n};", fmt.Sprintf(",\n  %s = 1 << %d\n};", in.Event, 30-strings.Count(text, "/* invented */")), 1)
	text = strings.Replace(text, "\n} ncclProfilerEventState_t;", fmt.Sprintf(",\n  %s = %d\n} ncclProfilerEventState_t;", in.State, 1000+in.Profiler), 1)
	return text + "/* invented */\n"
}

// grown adds a function to a table, on what its family calls a handle, and a
// parameter to one of its others.
func grown(r *rand.Rand, body, handle string) (text, function, slot, param string) {
	function, param = word(r), word(r)
	var open [][]int
	for _, s := range slotDecl.FindAllStringSubmatchIndex(body, -1) {
		if !isNull[body[s[2]:s[3]]] {
			open = append(open, s)
		}
	}
	s := open[r.IntN(len(open))]
	slot = body[s[2]:s[3]]
	params := strings.Split(body[s[4]:s[5]], ",")
	params = insert(params, r.IntN(len(params)+1), " "+typ(r)+" "+param)
	decl := fmt.Sprintf("  ncclResult_t (*%s)(void* %s, %s %s, %s %s);\n", function, handle, typ(r), word(r), typ(r), word(r))
	body = body[:s[4]] + strings.TrimSpace(strings.Join(params, ",")) + body[s[5]:]
	ends := slotDecl.FindAllStringIndex(body, -1)
	at := ends[r.IntN(len(ends))][1]
	return body[:at] + decl + body[at:], function, slot, param
}

// isNull are the slots that are NULL by rule: nobody calls them.
var isNull = map[string]bool{"makeVDevice": true, "getDeviceMr": true, "irecvConsumed": true}

var slotDecl = regexp.MustCompile(`ncclResult_t \(\*(\w+)\)\(([^;]*)\);\n`)

// within replaces the body of the struct that ends in the given name.
func within(t *testing.T, header, name string, change func(body string) string) string {
	t.Helper()
	end := strings.Index(header, "} "+name+";")
	if end < 0 {
		t.Fatalf("no struct %s", name)
	}
	open := "typedef struct {\n"
	begin := strings.LastIndex(header[:end], open) + len(open)
	return header[:begin] + change(header[begin:end]) + header[end:]
}

func insert(list []string, at int, s string) []string {
	out := append([]string(nil), list[:at]...)
	return append(append(out, s), list[at:]...)
}
