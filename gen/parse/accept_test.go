package parse

import (
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"weft/gen/model"
)

func parseText(t *testing.T, text string, library bool) *model.Unit {
	t.Helper()
	u, err := Headers(Options{FS: fstest.MapFS{"a.h": {Data: []byte(text)}}, Headers: []string{"a.h"}, Arch: "arm64", Library: library})
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// What cc drops or blurs survives: const, typedef names, orders of keywords,
// declarators within declarators.
func TestSpellings(t *testing.T) {
	u := parseText(t, `
#include <cstdint>
#include <stdbool.h>
#include <sys/types.h>
typedef unsigned long int word_t;
typedef word_t alias_t;
enum color { RED, GREEN = RED + 4, BLUE };
struct opaque;
typedef struct node {
  const char* name;
  char* const fixed;
  const char* const* list;
  long unsigned n, *pn;
  alias_t a[2][3];
  enum color c;
  struct opaque* o;
  struct node* next;
  int (*f)(void);
  void (*g)(const void* p, int v[4], int (*cb)(int), ...);
  int (*table[2])(long);
  int* (*h)(void);
  bool b;
  pid_t pid;
  union {
    float x;
    struct { short lo, hi; } pair;
  };
} node_t;
`, false)
	var got []string
	for _, f := range u.Record("node_t").Fields {
		got = append(got, f.Type.Declare(f.Name))
	}
	want := []string{
		"const char* name", "char* const fixed", "const char* const* list", "unsigned long n", "unsigned long* pn",
		"alias_t a[2][3]", "enum color c", "struct opaque* o", "struct node* next", "int (*f)(void)",
		"void (*g)(const void* p, int* v, int (*cb)(int), ...)", "int (*table[2])(long)", "int* (*h)(void)",
		"bool b", "pid_t pid", "union",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if f, off := u.Record("node_t").Field("pair"); f == nil || off != 160 || f.Type.Size != 4 {
		t.Errorf("pair in the union: %+v at %d", f, off)
	}
	if e := u.Enum("enum color"); e == nil || e.Values[2].Value != 5 || e.Signed {
		t.Errorf("enum color: %+v", e)
	}
	if r := u.Record("struct node"); r == nil || r != u.Record("node_t") {
		t.Error("struct node and node_t are not one record")
	}
}

// A header of our own may hold more than tables.
func TestLibraryHeader(t *testing.T) {
	u := parseText(t, `
#include <stdint.h>
#include <stddef.h>
#define LINES 256        /* of the ring */
#define MASK 0xffffffu
#define GREETING "hello"
#define TWICE(x) ((x) * 2)
#define SIZE sizeof(struct line)
struct line { uint32_t a; _Alignas(64) uint64_t b; };
struct ring { struct line l[LINES]; };
extern uint32_t epoch;
static inline int one(void) { return 1; }
int run(struct ring* ring, size_t n) __attribute__((visibility("default")));
`, true)
	if r := u.Record("struct line"); r.Size != 128 || r.Align != 64 || r.Fields[1].Offset != 64 {
		t.Errorf("struct line: %+v", r)
	}
	if f := u.Func("run"); f == nil || f.String() != "int run(struct ring* ring, size_t n)" {
		t.Errorf("run: %v", f)
	}
	var got []string
	for _, m := range u.Macros {
		got = append(got, m.Name+" "+m.Text)
	}
	want := []string{"LINES 256", "MASK 0xffffffu", `GREETING "hello"`, "SIZE sizeof(struct line)"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if m := u.Macro("SIZE"); m.Kind != model.MacroUint || m.Uint != 128 {
		t.Errorf("SIZE: %+v", m)
	}
	if m := u.Macro("LINES"); m.Doc != "of the ring" {
		t.Errorf("LINES: comment %q", m.Doc)
	}
}
