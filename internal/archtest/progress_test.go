package archtest

import (
	"regexp"
	"slices"
	"testing"
)

// onProgress are the functions that NCCL calls on its progress thread, some of them for every message. Entering Go there costs
// tens of nanoseconds, after an idle moment thousands.
var onProgress = []string{"isend", "irecv", "iflush", "test", "setNetAttr", "irecvConsumed"}

var exportedNet = regexp.MustCompile(`(?m)^//export weft_net_(\w+)$`)

func TestTheProgressThreadStaysInC(t *testing.T) {
	entries := exportedNet.FindAllStringSubmatch(read(t, "plugin/zz_exports.go"), -1)
	if len(entries) < 10 {
		t.Fatalf("only %d functions enter Go: is this still where they are?", len(entries))
	}
	for _, m := range entries {
		if slices.Contains(onProgress, m[1]) {
			t.Errorf("%s enters Go on NCCL's progress thread", m[1])
		}
	}
}
