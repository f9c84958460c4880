package emit

import (
	"bytes"
	"io/fs"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"weft/gen/parse"
)

func itoa(n int) string { return strconv.Itoa(n) }

const v13 = "headers/nccl/net_v13.h"

// TestRefusals changes one thing at a time and requires the one message that
// says where it is and which rule would decide it.
func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(t *testing.T, tree fstest.MapFS)
		want   func(t *testing.T, tree fstest.MapFS) []string
	}{
		{"an unchanged new version", func(t *testing.T, tree fstest.MapFS) { nextVersion(t, tree) }, nil},
		{"removed function", func(t *testing.T, tree fstest.MapFS) {
			nextVersion(t, tree)
			edit(t, tree, v13, "  ncclResult_t (*closeRecv)(void* recvComm);\n", "")
		}, func(t *testing.T, tree fstest.MapFS) []string {
			return []string{at(t, tree, "headers/nccl/net_v2.h", "(*closeRecv)", "closeRecv") +
				`: ncclNet_v2_t.closeRecv: function "closeRecv" is not in ncclNet_v13_t any more, and tables that have it must go on; write in gen/rules: adapter net v2..v12 closeRecv CFUNC -- WHY  or: null net v2..v12 closeRecv -- WHY`}
		}},
		{"changed parameter type", func(t *testing.T, tree fstest.MapFS) {
			nextVersion(t, tree)
			edit(t, tree, v13, "(*listen)(void* ctx, int dev", "(*listen)(void* ctx, float dev")
		}, func(t *testing.T, tree fstest.MapFS) []string {
			return []string{at(t, tree, "headers/nccl/net_v2.h", "(*listen)", "dev") +
				`: ncclNet_v2_t.listen: parameter "dev" is int, but weft_net_listen of ncclNet_v13_t wants float (` +
				at(t, tree, v13, "(*listen)", "dev") + `); write in gen/rules: convert net v2..v12 listen.dev CFUNC`}
		}},
		{"changed parameter type of a fast function", func(t *testing.T, tree fstest.MapFS) {
			nextVersion(t, tree)
			edit(t, tree, v13, "size_t size, int tag", "size_t size, int64_t tag")
		}, func(t *testing.T, tree fstest.MapFS) []string {
			return []string{at(t, tree, v13, "(*isend)", "tag") + `: ncclNet_v13_t.isend: parameter "tag" is int64_t, but weft_isend of ncclNet_v13_t wants int (transport/fastpath/fastpath.h:`,
				`write in gen/rules: convert net v13 isend.tag CFUNC`}
		}},
		{"changed field type", func(t *testing.T, tree fstest.MapFS) {
			nextVersion(t, tree)
			edit(t, tree, v13, "  int speed; ", "  float speed; ")
		}, func(t *testing.T, tree fstest.MapFS) []string {
			return []string{at(t, tree, "headers/nccl/net_v3.h", "int speed", "speed") + `: ncclNet_v3_t.getProperties: field "speed" of ncclNetProperties_v3_t: it is int here and float in ncclNetProperties_v13_t (` +
				at(t, tree, v13, "float speed", "speed") + `); write in gen/rules: convert ncclNetProperties v3 speed CFUNC`}
		}},
		{"removed field", func(t *testing.T, tree fstest.MapFS) {
			nextVersion(t, tree)
			edit(t, tree, v13, "  int speed; ", "  int pace; ")
		}, func(t *testing.T, tree fstest.MapFS) []string {
			return []string{at(t, tree, "headers/nccl/net_v12.h", "int speed", "speed") + `: ncclNet_v12_t.getProperties: field "speed" of ncclNetProperties_v12_t: ncclNetProperties_v13_t has no such field; write in gen/rules: relabel ncclNetProperties v12 speed NEWNAME  or: lose ncclNetProperties v12 speed -- WHY`}
		}},
		{"undefined type", func(t *testing.T, tree fstest.MapFS) {
			nextVersion(t, tree)
			edit(t, tree, v13, "int dev, void* handle, void** listenComm", "ncclDevice_t dev, void* handle, void** listenComm")
		}, func(t *testing.T, tree fstest.MapFS) []string {
			return []string{"nccl/net_v13.h:", "ncclDevice_t"}
		}},
		{"packed struct", func(t *testing.T, tree fstest.MapFS) {
			nextVersion(t, tree)
			edit(t, tree, v13, "} ncclNetProperties_v13_t;", "} __attribute__((packed)) ncclNetProperties_v13_t;")
		}, func(t *testing.T, tree fstest.MapFS) []string {
			return []string{at(t, tree, v13, "} __attribute__", "__attribute__") + ": __attribute__: an attribute may change the layout"}
		}},
		{"missing rule for a void*", func(t *testing.T, tree fstest.MapFS) {
			nextVersion(t, tree)
			edit(t, tree, v13, "(*closeSend)(void* sendComm)", "(*closeSend)(void* sendComm, void* reason)")
		}, func(t *testing.T, tree fstest.MapFS) []string {
			return []string{at(t, tree, v13, "(*closeSend)", "reason") + `: ncclNet_v13_t.closeSend: parameter "reason" (void*) is an undecided void*; write in gen/rules: opaque net closeSend.reason  (the core hands it on) or: memory net closeSend.reason  (the core reads or writes there)`}
		}},
		{"missing rule for a struct", func(t *testing.T, tree fstest.MapFS) {
			nextVersion(t, tree)
			edit(t, tree, v13, "(*closeSend)(void* sendComm)", "(*closeSend)(void* sendComm, ncclNetAttr_v13_t* last)")
		}, func(t *testing.T, tree fstest.MapFS) []string {
			return []string{`parameter "last" (ncclNetAttr_v13_t*): is the struct read or written? write in gen/rules: in net closeSend.last  or: out net closeSend.last`}
		}},
		{"missing rule for a vanished parameter", func(t *testing.T, tree fstest.MapFS) {
			nextVersion(t, tree)
			edit(t, tree, v13, "(*regMr)(void* comm, void* data, size_t size, int type", "(*regMr)(void* comm, void* data, size_t size, int kind")
		}, func(t *testing.T, tree fstest.MapFS) []string {
			return []string{at(t, tree, "headers/nccl/net_v2.h", "(*regMr)", "type") + `: ncclNet_v2_t.regMr: parameter "type" (int) is not taken by weft_net_regMr; write in gen/rules: rename net v2..v12 regMr.type NEWNAME  or: drop net v2..v12 regMr.type -- WHY`}
		}},
		{"missing rule for a union", func(t *testing.T, tree fstest.MapFS) {
			edit(t, tree, "gen/rules/profiler.rules", "select ncclProfilerEventDescr type ncclProfileP2p p2p\n", "")
			events := "headers/nccl/profiler_event.h"
			tree[events] = &fstest.MapFile{Data: bytes.ReplaceAll(tree[events].Data, []byte("ncclProfileP2p "), []byte("ncclProfilePair "))}
		}, func(t *testing.T, tree fstest.MapFS) []string {
			return []string{at(t, tree, "headers/nccl/profiler_v1.h", "} p2p;", "p2p") + `: ncclProfiler_v1_t.startEvent: field "p2p" of ncclProfilerEventDescr_v1_t: it is a member of a union, and nothing says when it counts; write in gen/rules: select ncclProfilerEventDescr SELECTOR VALUE p2p`}
		}},
		{"unknown directive", func(t *testing.T, tree fstest.MapFS) {
			tree["gen/rules/x.rules"] = &fstest.MapFile{Data: []byte("# one\n\nforget net v2 flush\n")}
		}, func(*testing.T, fstest.MapFS) []string {
			return []string{`gen/rules/x.rules:3: unknown directive "forget"; there are `}
		}},
		{"rule that matches nothing", func(t *testing.T, tree fstest.MapFS) {
			tree["gen/rules/x.rules"] = &fstest.MapFile{Data: []byte("rename net v4 iflush.length sizes\nslow net teleport\n")}
		}, func(*testing.T, fstest.MapFS) []string {
			return []string{`gen/rules/x.rules:1: rule "rename" matches nothing: no header has net v4 iflush.length sizes`, `gen/rules/x.rules:2: rule "slow" matches nothing: no header has net teleport`}
		}},
		{"fast function that is not there", func(t *testing.T, tree fstest.MapFS) {
			edit(t, tree, "gen/rules/net.rules", "fast net isend weft_isend", "fast net isend weft_launch")
		}, func(*testing.T, fstest.MapFS) []string {
			return []string{"fast: transport/fastpath/fastpath.h declares no weft_launch"}
		}},
		{"a wider field that a chained table must be given", func(t *testing.T, tree fstest.MapFS) {
			edit(t, tree, "headers/nccl/profiler_v6.h", "      int step;", "      int64_t step;")
		}, func(t *testing.T, tree fstest.MapFS) []string {
			return []string{at(t, tree, "headers/nccl/profiler_v1.h", "int step;", "step") + `: ncclProfiler_v1_t.startEvent: field "step" of ncclProfilerEventDescr_v1_t: it is int here and int64_t in ncclProfilerEventDescr_v6_t (` +
				at(t, tree, "headers/nccl/profiler_v6.h", "int64_t step", "step") + `); write in gen/rules: revert ncclProfilerEventDescr v1 proxyStep.step CFUNC  or: narrow ncclProfilerEventDescr v1 proxyStep.step -- WHY`}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			tree := realTree(t)
			c.change(t, tree)
			err := tryGenerate(t, tree)
			if c.want == nil {
				if err != nil {
					t.Fatalf("refused: %v", err)
				}
				return
			}
			if err == nil {
				t.Fatal("accepted")
			}
			for _, w := range c.want(t, tree) {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("got\n\t%v\nwant\n\t%s", err, w)
				}
			}
		})
	}
}

func tryGenerate(t *testing.T, tree fstest.MapFS) error {
	t.Helper()
	headers, err := fs.Sub(tree, "headers")
	if err != nil {
		t.Fatal(err)
	}
	unit, err := parse.NCCL(headers)
	if err != nil {
		return err
	}
	_, err = Files(unit, tree)
	return err
}
