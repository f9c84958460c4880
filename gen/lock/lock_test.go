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
