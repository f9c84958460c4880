package archtest

import (
	"path"
	"slices"
	"strings"
	"testing"
)

// budgets bound the C of the product, in statements, so that decisions stay in Go.
var budgets = []struct {
	what       string
	statements int
	match      func(file string) bool
}{
	{"the executor, transport/fastpath/*.c and *.h", 1110, func(f string) bool {
		return path.Dir(f) == "transport/fastpath" && !ofQueuePairs(f) && !ofCounts(f)
	}},
	{"what the executor counts, transport/fastpath/count.c and .h", 35, ofCounts},
	{"the lanes of queue pairs, transport/fastpath/verbs.c, write.c, flush.c, lane.h and post.h", 515, ofQueuePairs},
	{"the recorder, transport/record/*.c and *.h", 130, func(f string) bool { return path.Dir(f) == "transport/record" }},
	{"the metrics, transport/meter/*.c and *.h", 30, func(f string) bool { return path.Dir(f) == "transport/meter" }},
	{"the guest, guest/*.c and *.h", 300, func(f string) bool { return path.Dir(f) == "guest" }},
	{"the stream pump, transport/tcp/*.c and *.h", 440, func(f string) bool { return path.Dir(f) == "transport/tcp" && !ofZeroCopy(f) && !ofCoalescing(f) }},
	{"small sends that leave together, transport/tcp/coalesce.c", 50, ofCoalescing},
	{"what the kernel sends without a copy, transport/tcp/zerocopy.c", 75, ofZeroCopy},
	{"libibverbs, transport/verbs/ibv/*.c and *.h", 230, func(f string) bool { return path.Dir(f) == "transport/verbs/ibv" }},
	{"the reductions, collnet/kernels/*.c and *.h", 150, func(f string) bool { return path.Dir(f) == "collnet/kernels" }},
	{"the shims by hand, compat/*.c and *.h", 110, func(f string) bool { return path.Dir(f) == "compat" }},
	{"what the plugin has of C, plugin/*.c and *.h", 90, func(f string) bool {
		return path.Dir(f) == "plugin" && !ofProfiler(f) && !ofRequests(f) && !ofTuner(f)
	}},
	{"the requests of collectives, plugin/requests.c and .h", 90, ofRequests},
	{"what the tuner forbids, plugin/tune.c and .h", 50, ofTuner},
	{"the profiler's events, plugin/profile.c and .h, and chain*.c", 440, ofProfiler},
	{"the host, tools/host/*, but for fuzz* and what is of collectives", 1700, func(f string) bool {
		return path.Dir(f) == "tools/host" && !ofFuzzer(f) && !ofCollectives(f)
	}},
	{"collectives of the host, tools/host/coll* and values.c", 300, ofCollectives},
	{"the fuzzer of table calls, tools/host/fuzz*", 750, func(f string) bool { return path.Dir(f) == "tools/host" && ofFuzzer(f) }},
	{"the simulated libibverbs, tools/simverbs/*", 2000, func(f string) bool { return path.Dir(f) == "tools/simverbs" }},
	{"the simulated CUDA, tools/simgpu/cuda and tools/simgpu/include", 850, func(f string) bool {
		return ofSimgpu(f, "cuda") || ofSimgpu(f, "include")
	}},
	{"the player of kernels, tools/simgpu/player", 1050, func(f string) bool { return ofSimgpu(f, "player") }},
	{"the ranks under NCCL, tools/simgpu/driver", 550, func(f string) bool { return ofSimgpu(f, "driver") }},
}

func ofQueuePairs(f string) bool {
	return path.Dir(f) == "transport/fastpath" && slices.Contains([]string{"verbs.c", "write.c", "flush.c", "lane.h", "post.h"}, path.Base(f))
}

func ofCounts(f string) bool { return strings.HasPrefix(f, "transport/fastpath/count.") }

func ofCoalescing(f string) bool { return f == "transport/tcp/coalesce.c" }

func ofZeroCopy(f string) bool { return f == "transport/tcp/zerocopy.c" }

func ofProfiler(f string) bool {
	return path.Dir(f) == "plugin" && (strings.HasPrefix(path.Base(f), "profile") || strings.HasPrefix(path.Base(f), "chain"))
}

func ofRequests(f string) bool { return strings.HasPrefix(f, "plugin/requests.") }

func ofTuner(f string) bool {
	return path.Dir(f) == "plugin" && strings.HasPrefix(path.Base(f), "tune")
}

func ofFuzzer(f string) bool { return strings.HasPrefix(path.Base(f), "fuzz") }

func ofCollectives(f string) bool {
	return path.Dir(f) == "tools/host" && (strings.HasPrefix(path.Base(f), "coll") || path.Base(f) == "values.c")
}

func ofSimgpu(f, part string) bool { return strings.HasPrefix(f, "tools/simgpu/"+part+"/") }

func count(text string) int { return strings.Count(text, "\n") }

func TestBudgetsOfC(t *testing.T) {
	for _, b := range budgets {
		total, some := 0, false
		for _, f := range list(t) {
			if slices.Contains([]string{".c", ".h", ".inc", ".cc"}, path.Ext(f)) && !generated(f) && b.match(f) {
				total += len(statements(read(t, f)))
				some = true
			}
		}
		if !some {
			t.Errorf("%s: no such files", b.what)
		}
		if total > b.statements {
			t.Errorf("%s: %d statements, at most %d are allowed", b.what, total, b.statements)
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
