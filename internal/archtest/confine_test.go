package archtest

import (
	"path"
	"slices"
	"strings"
	"testing"
)

// cgo lists the packages that may import "C", and why.
var cgo = map[string]string{
	"transport/fastpath":   "the C executor and its Go view",
	"transport/tcp":        "the stream pump",
	"transport/verbs/ibv":  "libibverbs, found at run time",
	"transport/comms":      "the ops table through which C calls the core",
	"internal/hostcalls":   "Go tests call the executor as a host does",
	"plugin":               "the exported slow path, NCCL's logger, C.getenv",
	"compat":               "the version tables",
	"collnet/kernels":      "reductions, which compilers of C vectorise",
	"transport/record":     "the recorder of what happens, and its Go view",
	"transport/meter":      "what connections count, and its Go view",
	"guest":                "how Go starts, on which threads, and which signals they take",
	"internal/link/second": "the other Go library of a test",
}

func TestCgoIsConfined(t *testing.T) {
	for _, g := range sources(t) {
		if slices.Contains(g.imports, "C") && cgo[g.pkg] == "" {
			t.Errorf(`%s imports "C"; only these packages may: %v`, g.name, cgo)
		}
	}
}

func TestUnsafeIsConfined(t *testing.T) {
	for _, g := range sources(t) {
		base := path.Base(g.name)
		if g.test || !slices.Contains(g.imports, "unsafe") || generated(g.name) || slices.Contains(g.imports, "C") || strings.HasSuffix(base, "_unsafe.go") {
			continue
		}
		t.Errorf(`%s imports "unsafe"; only zz_ files, *_unsafe.go and files with import "C" may`, g.name)
	}
}
