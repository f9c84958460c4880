package archtest

import (
	"path"
	"slices"
	"strings"
	"testing"
)

// budgets bound the C of the product, in lines, so that decisions stay in Go.
var budgets = []struct {
	what  string
	lines int
	match func(file string) bool
}{
	{"the executor, transport/fastpath/*.c", 1050, func(f string) bool {
		return path.Dir(f) == "transport/fastpath" && strings.HasSuffix(f, ".c") && !ofQueuePairs(f)
	}},
	{"the lanes of queue pairs, transport/fastpath/verbs.c, flush.c and post.h", 500, ofQueuePairs},
	{"the guest, guest/*.c", 500, func(f string) bool { return path.Dir(f) == "guest" && strings.HasSuffix(f, ".c") }},
	{"the stream pump, transport/tcp/*.c", 470, func(f string) bool { return path.Dir(f) == "transport/tcp" && strings.HasSuffix(f, ".c") }},
	{"the host, tools/host/*.c, *.h and *.inc, but for fuzz*", 2650, func(f string) bool { return ofHost(f) && !ofFuzzer(f) }},
	{"the fuzzer of table calls, tools/host/fuzz*", 900, func(f string) bool { return ofHost(f) && ofFuzzer(f) }},
	{"the simulated libibverbs, tools/simverbs/*.c and *.h", 2650, func(f string) bool {
		return path.Dir(f) == "tools/simverbs" && slices.Contains([]string{".c", ".h"}, path.Ext(f))
	}},
	{"the simulated CUDA, tools/simgpu/cuda and tools/simgpu/include", 1800, func(f string) bool {
		return ofSimgpu(f, "cuda") || ofSimgpu(f, "include")
	}},
	{"the player of kernels, tools/simgpu/player", 1800, func(f string) bool { return ofSimgpu(f, "player") }},
	{"the ranks under NCCL, tools/simgpu/driver", 850, func(f string) bool { return ofSimgpu(f, "driver") }},
}

func ofQueuePairs(f string) bool {
	return path.Dir(f) == "transport/fastpath" && slices.Contains([]string{"verbs.c", "flush.c", "post.h"}, path.Base(f))
}

func ofHost(f string) bool {
	return path.Dir(f) == "tools/host" && slices.Contains([]string{".c", ".h", ".inc"}, path.Ext(f))
}

func ofFuzzer(f string) bool { return strings.HasPrefix(path.Base(f), "fuzz") }

func ofSimgpu(f, part string) bool { return strings.HasPrefix(f, "tools/simgpu/"+part+"/") }

func count(text string) int { return strings.Count(text, "\n") }

func TestBudgetsOfC(t *testing.T) {
	for _, b := range budgets {
		total, some := 0, false
		for _, f := range list(t) {
			if b.match(f) && !generated(f) {
				total += count(read(t, f))
				some = true
			}
		}
		if !some {
			t.Errorf("%s: no such files", b.what)
		}
		if total > b.lines {
			t.Errorf("%s: %d lines, at most %d are allowed", b.what, total, b.lines)
		}
	}
}

// maxLines is where a file has let a second concept in.
const maxLines = 400

func TestFilesAreShort(t *testing.T) {
	for _, f := range list(t) {
		switch path.Ext(f) {
		case ".go", ".c", ".cc", ".h", ".mk", ".sh":
		default:
			continue
		}
		if generated(f) || testdata(f) {
			continue
		}
		if n := count(read(t, f)); n > maxLines {
			t.Errorf("%s has %d lines, at most %d are allowed: which second concept moved in?", f, n, maxLines)
		}
	}
}

// C++ is where NCCL's own headers are: the player is compiled with them, and CUDA's names are theirs.
func TestCxxIsConfined(t *testing.T) {
	for _, f := range list(t) {
		switch path.Ext(f) {
		case ".cc", ".cpp", ".cxx", ".hh", ".hpp":
			if path.Dir(f) != "tools/simgpu/player" {
				t.Errorf("%s is C++, which stands in tools/simgpu/player only", f)
			}
		}
	}
}
