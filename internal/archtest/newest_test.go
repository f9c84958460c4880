package archtest

import (
	"fmt"
	"path"
	"regexp"
	"testing"

	"weft/abi"
)

// namesNewest are the folders and files that may name the newest tables, and why: a released table does not change, so that what is
// written for it stays right when a newer one comes. All others take the versions from the headers (abi/zz_tables.go, internal/host).
var namesNewest = map[string]string{
	"headers":                         "defines them",
	"gen":                             "its tests have the headers as of a version (gen/asof)",
	"internal/bench/both":             "calls one table by hand, the one whose instructions have a budget",
	"internal/conform/report_test.go": "a report's text, whatever the table",
	"internal/doctor/fixture":         "libraries with some symbols",
	"internal/link/link_test.go":      "a version script's text",
	"internal/loads/testdata/nccl.c":  "plays two releases, with a table by hand for each",
	"internal/nccl/log_test.go":       "a log's text",
	"internal/nccl/testdata":          "plugins between NCCL and weft, by hand for each table",
	"lib/testdata":                    "hosts that call two tables by hand, one without contexts and one with",
	"tools/host/testdata":             "plugins with tables by hand",
	"tools/weft/conform_test.go":      "judges a plugin of tools/host/testdata",
}

func TestNobodyNamesTheNewestTable(t *testing.T) {
	newest := regexp.MustCompile(fmt.Sprintf(`(?i)(net|plugin|table|prop\w*)[ _]?v%d\b|profiler[ _]?v%d\b|tuner[ _]?v%d\b`, abi.NetNewest, abi.ProfilerNewest, abi.TunerNewest))
	for _, f := range list(t) {
		if generated(f) || path.Ext(f) == ".md" || allowedToName(f) {
			continue
		}
		if name := newest.FindString(read(t, f)); name != "" {
			t.Errorf("%s names %s: a newer table comes with its header, and this would stay behind; take the version from internal/host or abi, or say in namesNewest why it is this one", f, name)
		}
	}
}

func allowedToName(file string) bool {
	for folder := range namesNewest {
		if within(file, folder) {
			return true
		}
	}
	return false
}
