package archtest

import (
	"slices"
	"strings"
	"testing"
)

// layers lists the product's packages from the lowest up. A package imports from lower layers only.
var layers = [][]string{
	{"abi", "transport/rdma", "internal/report", "internal/knob", "internal/node", "internal/version", "collnet/schedule"},
	{"transport/wire", "transport/task", "transport/record/format", "collnet/choose", "collnet/kernels"},
	{"transport/record/mapped", "transport/meter/format"},
	{"transport/record", "transport/meter"},
	{"transport/fastpath"},
	{"transport/memory"},
	{"guest"},
	{"transport/verbs/ibv", "transport/verbs/machine", "transport/verbs/fail", "transport/verbs/hca", "transport/verbs/gid", "transport/tcp/ifname"},
	{"transport/verbs/card"},
	{"transport/verbs/mr"},
	{"transport/verbs/port"},
	{"transport/verbs/qp"},
	{"transport/verbs/event"},
	{"transport/verbs", "transport/tcp"},
	{"transport/route", "transport/rendezvous"},
	{"transport/session", "transport/device"},
	{"transport/carrier"},
	{"transport/comms", "transport/streams", "transport/liveness", "transport/pool", "transport/stall"},
	{"transport/lanes"},
	{"transport/offers"},
	{"transport"},
	{"collnet", "profiler", "tuner"},
	{"plugin"},
	{"compat"},
	{"lib"},
}

// beside are the folders outside the product's layers, and what of the repository they may import.
var beside = map[string][]string{
	"headers":            {},
	"gen":                {"gen", "headers"},
	"tools/weft":         {"tools/weft", "internal", "headers", "abi", "transport/rdma", "transport/record/format"},
	"tools/packages":     {"tools/packages"}, // a module of its own
	"tools/manifests":    {},                 // another
	"internal/conns":     {"internal/knob", "internal/report", "transport/rdma", "transport/rendezvous", "transport/tcp", "transport/wire"},
	"internal/hostcalls": {"transport/fastpath"},
	"internal/fakeibv":   {"internal", "transport/verbs/card", "transport/verbs/ibv", "transport/verbs/machine"},
	"internal/abidiff":   {"internal/release", "headers", "gen/lock", "gen/model", "gen/parse", "gen/source"},
	"internal/doctor":    {"internal", "transport/rdma", "transport/tcp/ifname", "transport/verbs/gid", "transport/verbs/hca"},
	"internal/info":      {"internal", "transport/rdma", "transport/verbs/machine", "transport/wire"},
	"internal":           {"internal", "headers", "abi", "transport/rdma", "transport/wire", "transport/record/format", "transport/meter/format"},
}

// data may be imported from every layer: it is embedded text without code.
var data = []string{"headers"}

// within says whether pkg is folder or lies below it.
func within(pkg, folder string) bool { return pkg == folder || strings.HasPrefix(pkg, folder+"/") }

func anyWithin(pkg string, folders []string) bool {
	for _, f := range folders {
		if within(pkg, f) {
			return true
		}
	}
	return false
}

// layer returns the layer of a package and the folder that put it there; -1 when it is beside the layers.
func layer(pkg string) (int, string) {
	best, where := -1, ""
	for i, folders := range layers {
		for _, f := range folders {
			if within(pkg, f) && len(f) > len(where) {
				best, where = i, f
			}
		}
	}
	return best, where
}

func besideOf(pkg string) (string, bool) {
	best := ""
	for f := range beside {
		if within(pkg, f) && len(f) > len(best) {
			best = f
		}
	}
	return best, best != ""
}

func TestImportsPointDown(t *testing.T) {
	for _, g := range sources(t) {
		if g.test {
			continue // a test may build and run what lies above it
		}
		level, folder := layer(g.pkg)
		aside, isAside := besideOf(g.pkg)
		if level < 0 && !isAside || level >= 0 && folder != g.pkg {
			t.Errorf("%s: the package %s has no layer: add it to layers or beside in internal/archtest/layer_test.go", g.name, g.pkg)
			continue
		}
		for _, imp := range g.imports {
			dep, ours := strings.CutPrefix(imp, "weft/")
			if !ours || anyWithin(dep, data) {
				continue
			}
			to, _ := layer(dep)
			switch {
			case level < 0:
				if !anyWithin(dep, beside[aside]) {
					t.Errorf("%s imports %s; %s may import only %v", g.name, imp, aside, beside[aside])
				}
			case to < 0:
				t.Errorf("%s imports %s, which is no part of the product", g.name, imp)
			case to >= level:
				t.Errorf("%s (layer %d) imports %s (layer %d); imports point down", g.name, level, imp, to)
			}
		}
	}
}

// A rule about a folder that is gone, or that is not there yet, keeps nothing.
func TestRulesNameWhatIsThere(t *testing.T) {
	var named []string
	for _, folders := range layers {
		named = append(named, folders...)
	}
	for folder, imports := range beside {
		named = append(append(named, folder), imports...)
	}
	for pkg := range cgo {
		named = append(named, pkg)
	}
	for _, pkg := range tools {
		named = append(named, strings.TrimPrefix(pkg, "weft/"))
	}
	for _, folder := range append(named, data...) {
		if !slices.ContainsFunc(sources(t), func(g goFile) bool { return within(g.pkg, folder) }) {
			t.Errorf("a rule names %s, where there is no Go package", folder)
		}
	}
}

// The generator must stay usable on its own, and nothing of the product may come to depend on it: only `weft abi` reads and
// compares headers as it does.
func TestNobodyImportsTheGenerator(t *testing.T) {
	const reader = "internal/abidiff"
	for _, g := range sources(t) {
		if within(g.pkg, "gen") {
			continue
		}
		for _, imp := range g.imports {
			dep, ours := strings.CutPrefix(imp, "weft/")
			if ours && within(dep, "gen") && !(g.pkg == reader && slices.Contains(beside[reader], dep)) {
				t.Errorf("%s imports %s", g.name, imp)
			}
		}
	}
}
