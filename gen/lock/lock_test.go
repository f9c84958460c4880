package lock

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"weft/gen/parse"
	"weft/headers"
)

func linesOf(t *testing.T, text string) []Line {
	t.Helper()
	u, err := parse.Headers(parse.Options{FS: fstest.MapFS{"a.h": {Data: []byte(text)}}, Headers: []string{"a.h"}, Arch: "amd64"})
	if err != nil {
		t.Fatal(err)
	}
	return Of(u)
}

const header = `
#define LIMIT 4
typedef enum { tA = 0, tNumAll = 1 } t_t;
typedef struct {
  int a;
  union {
    struct { short lo; } pair;
    float f;
  };
  int (*g)(int x);
} thing_v3_t;
typedef thing_v3_t thing_v4_t;
`

func TestLines(t *testing.T) {
	ls := linesOf(t, header)
	want := strings.TrimSpace(`
- - LIMIT 4 0 macro
- t_t - 0 4 enum
- t_t tA 0 4 enumerator
- t_t tNumAll 1 4 enumerator
v3 thing_v3_t - 0 16 struct align 8
v3 thing_v3_t a 0 4 int
v3 thing_v3_t pair 4 2 struct
v3 thing_v3_t pair.lo 4 2 short
v3 thing_v3_t f 4 4 float
v3 thing_v3_t g 8 8 int (*)(int x)
v4 thing_v4_t - 0 16 typedef thing_v3_t`)
	text := string(Format(ls))
	if got := strings.TrimSpace(text[strings.LastIndex(text, "#")+len("# version type member offset-or-value size spelling"):]); got != want {
		t.Error(cmp.Diff(want, got))
	}
	back, err := Parse("LOCK", Format(ls))
	if err != nil {
		t.Fatal(err)
	}
	if cs := Diff(ls, back); len(cs) > 0 {
		t.Errorf("a round trip changes %v", cs[0])
	}
}

func TestParseErrors(t *testing.T) {
	for text, want := range map[string]string{
		"v3 thing a":            `LOCK:2: "v3 thing a" is not a fingerprint`,
		"vX thing a 0 4 int":    `LOCK:2: version "vX"`,
		"v3 thing a zero 4 int": `LOCK:2: offset "zero"`,
		"v3 thing a 0 four int": `LOCK:2: size "four"`,
	} {
		if _, err := Parse("LOCK", []byte("# head\n"+text+"\n")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
}

// What was released stays; what all versions share may grow.
func TestMerge(t *testing.T) {
	old := linesOf(t, header)
	low := Drift{Stem: "thing", Lo: 3, Hi: 3, Field: "a", Type: "unsigned_int", How: SameBits}
	for name, c := range map[string]struct {
		from, to string
		drifts   []Drift
		want     string // part of the error; none: accepted
	}{
		"nothing":           {"int a;", "int a;", nil, ""},
		"type":              {"int a;", "float a;", nil, "a.h:5:9: version 3 changed: thing_v3_t.a: int, 4 bytes at 0 -> float, 4 bytes at 0"},
		"name":              {"int a;", "int b;", nil, "thing_v3_t.b: none -> int, 4 bytes at 0"},
		"added field":       {"int a;", "int a; int b;", nil, "thing_v3_t.b: none -> int, 4 bytes at 4"},
		"nested":            {"short lo", "char lo", nil, "thing_v3_t.pair.lo: short, 2 bytes at 4 -> char, 1 bytes at 4"},
		"function":          {"(int x)", "(long x)", nil, "int (*)(int x), 8 bytes at 8 -> int (*)(long x), 8 bytes at 8"},
		"enumerator":        {"tA = 0", "tA = 7", nil, "what all versions share changed: t_t.tA: 0 -> 7"},
		"new enumerator":    {"tA = 0, tNumAll = 1", "tA = 0, tB = 1, tNumAll = 2", nil, ""},
		"removed":           {"tA = 0, ", "", nil, "t_t.tA: 0 -> none"},
		"counter shrinks":   {"tNumAll = 1", "tNumAll = 0", nil, "t_t.tNumAll: 1 -> 0"},
		"macro":             {"LIMIT 4", "LIMIT 8", nil, "LIMIT: 4 -> 8"},
		"new macro":         {"#define LIMIT 4", "#define LIMIT 4\n#define OTHER 1", nil, ""},
		"new version":       {"typedef thing_v3_t", "typedef struct { int z; } thing_v5_t;\ntypedef thing_v3_t", nil, ""},
		"alias":             {"typedef thing_v3_t thing_v4_t;", "typedef struct { long z; } thing_v4_t;", nil, "version 4 changed: thing_v4_t"},
		"drift":             {"int a;", "unsigned a;", []Drift{low}, ""},
		"another drift":     {"int a;", "float a;", []Drift{low}, "thing_v3_t.a"},
		"drift of a suffix": {"int a;", "unsigned a;", []Drift{{Stem: "thing", Lo: 4, Hi: 9, Field: "a", Type: "unsigned_int", How: SameBits}}, "thing_v3_t.a"},
	} {
		t.Run(name, func(t *testing.T) {
			edited := strings.Replace(header, c.from, c.to, 1)
			merged, err := Merge(old, linesOf(t, edited), c.drifts)
			switch {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("error %v, want %q", err, c.want)
			case err == nil:
				for k := range Known(old) {
					if !Known(merged)[k] {
						t.Errorf("%s is gone from the merged LOCK", k)
					}
				}
			}
		})
	}
}

// LOCK is what the headers say.
func TestOwnLock(t *testing.T) {
	b, err := headers.FS.ReadFile("LOCK")
	if err != nil {
		t.Fatal(err)
	}
	u, err := parse.NCCL(headers.FS)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(b), string(Format(Of(u)))); diff != "" {
		t.Errorf("headers/LOCK (-) and headers/nccl (+); run `make regen`:\n%s", diff)
	}
}

// Versions of a table are compared under names without versions: an alias is what
// it stands for, and of a function its parameters are told one by one.
func TestShapes(t *testing.T) {
	const text = `
typedef int ncclResult_t;
#define LIMIT_V3 4
#define LIMIT_V4 5
#define LIMIT_V2 6
#define DEPTH 7
#define DEPTH_V3 8
typedef struct { int a; } row_v2_t;
typedef row_v2_t row_v3_t;
typedef struct { row_v3_t rows[LIMIT_V3]; int last; } props_v3_t;
typedef struct { row_v3_t rows[LIMIT_V3]; long more; int last; } props_v4_t;
typedef struct {
  const char* name;
  ncclResult_t (*get)(int dev, props_v3_t* props);
  ncclResult_t (*put)(int a, int b, void* old, props_v3_t* props);
  ncclResult_t (*end)(void);
} ncclNet_v3_t;
typedef struct {
  const char* name;
  ncclResult_t (*get)(int dev, props_v4_t* properties);
  ncclResult_t (*put)(int b, int a, long n, props_v4_t* props);
  ncclResult_t (*end)(void);
} ncclNet_v4_t;
`
	u, err := parse.Headers(parse.Options{FS: fstest.MapFS{"a.h": {Data: []byte(text)}}, Headers: []string{"a.h"}, Arch: "amd64", Library: true})
	if err != nil {
		t.Fatal(err)
	}
	old, new := ShapeOf(u, u.Tables[0]), ShapeOf(u, u.Tables[1])
	if cs := Diff(old.Lines, old.Lines); len(cs) > 0 {
		t.Errorf("a table differs from itself: %v", cs[0])
	}
	var got []string
	for _, c := range Diff(old.Lines, new.Lines) {
		says := []string{[]string{"", "added", "removed", "changed", "respelled"}[c.Kind] + " " + c.Member()}
		if c.Moved() {
			says = append(says, "moved")
		}
		if c.Retyped() {
			says = append(says, "retyped")
		}
		params, result := c.Params()
		if result != nil {
			t.Errorf("%v returns something else: %v", c, result)
		}
		for _, p := range params {
			switch {
			case p.Old == nil:
				says = append(says, "+"+p.New.Name)
			case p.New == nil:
				says = append(says, "-"+p.Old.Name)
			default:
				says = append(says, p.Old.Name+">"+p.New.Name)
			}
		}
		got = append(got, strings.Join(says, " "))
	}
	want := []string{"respelled ncclNet.get props>properties", "changed ncclNet.put retyped a>a +n -old", "changed props retyped", "added props.more", "changed props.last moved", "added LIMIT_V3", "changed LIMIT", "removed LIMIT_V4"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(map[string]string{"ncclNet": "ncclNet_v3_t", "props": "props_v3_t", "row": "row_v3_t",
		"LIMIT": "LIMIT_V3", "LIMIT_V4": "LIMIT_V4", "LIMIT_V2": "LIMIT_V2", "DEPTH": "DEPTH", "DEPTH_V3": "DEPTH_V3"}, old.Names); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(map[string][]string{"props": {"get", "put"}, "row": {"get", "put"}}, old.Users); d != "" {
		t.Error(d)
	}
}

// A function is another one when two of its parameters changed places, though their types are the same.
func TestParametersInTurn(t *testing.T) {
	a, b := linesOf(t, "typedef struct { int (*f)(int a, int b); } t_v3_t;"), linesOf(t, "typedef struct { int (*f)(int b, int a); } t_v3_t;")
	if cs := Diff(a, b); len(cs) != 1 || cs[0].Kind != Changed {
		t.Errorf("%v", cs)
	}
}
