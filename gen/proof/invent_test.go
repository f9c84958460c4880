package proof

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
)

// invention is what a made-up release adds to the header before it.
type invention struct {
	Version  int
	Function string // new in the table
	Property string // new in the properties
	Slot     string // function that gains a parameter
	Param    string
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

// invent writes the header of version v out of that of version v-1: one more
// function, one more property, one more parameter, at places drawn by r.
func invent(t *testing.T, r *rand.Rand, header string, v int) (string, *invention) {
	t.Helper()
	in := &invention{Version: v, Function: word(r), Property: word(r), Param: word(r)}
	old, now := fmt.Sprint(v-1), fmt.Sprint(v)
	if alias := "ncclNetDeviceHandle_v" + now + "_t;\n"; !strings.Contains(header, "typedef ncclNetDeviceHandle_") {
		header = strings.Replace(header, "typedef struct", "typedef ncclNetDeviceHandle_v7_t "+alias+"\ntypedef struct", 1)
	}
	header = strings.NewReplacer("_v"+old, "_v"+now, "_V"+old, "_V"+now).Replace(header)

	types := []string{"int", "size_t", "uint64_t", "float", "int16_t"}
	typ := func() string { return types[r.IntN(len(types))] }
	header = within(t, header, "ncclNetProperties_v"+now+"_t", func(body string) string {
		lines := strings.SplitAfter(body, "\n")
		return strings.Join(insert(lines, 1+r.IntN(len(lines)-2), "  "+typ()+" "+in.Property+";\n"), "")
	})
	header = within(t, header, "ncclNet_v"+now+"_t", func(body string) string {
		slots := slotDecl.FindAllStringSubmatchIndex(body, -1)
		var open [][]int
		for _, s := range slots {
			if !isNull[body[s[2]:s[3]]] {
				open = append(open, s)
			}
		}
		s := open[r.IntN(len(open))]
		in.Slot = body[s[2]:s[3]]
		params := strings.Split(body[s[4]:s[5]], ",")
		params = insert(params, r.IntN(len(params)+1), " "+typ()+" "+in.Param)
		function := fmt.Sprintf("  ncclResult_t (*%s)(void* comm, %s %s, %s %s);\n", in.Function, typ(), word(r), typ(), word(r))
		body = body[:s[4]] + strings.TrimSpace(strings.Join(params, ",")) + body[s[5]:]
		at := 0 // after a slot, or before all of them but the name
		if ends := slotDecl.FindAllStringIndex(body, -1); len(ends) > 0 {
			at = ends[r.IntN(len(ends))][1]
		}
		return body[:at] + function + body[at:]
	})
	return header, in
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
