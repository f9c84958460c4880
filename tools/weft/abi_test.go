package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// The exit status is that of diff, and each form goes to standard output alone.
func TestAbi(t *testing.T) {
	for _, c := range []struct {
		args   string
		status int
		says   string // on standard output, or with status 2 on the other
	}{
		{"", 0, "ncclNetPlugin_v2 "},
		{"net v8", 0, "ncclNetPlugin_v8: looked up by NCCL 2.20.3 to "},
		{"net v8 v9", 1, "changed  isend: size is size_t, was int"},
		{"net v8 v8", 0, "no difference"},
		{"--table net v8 v9", 1, "| isend | `ncclResult_t (*)("},
		{"net v8 v9 --json", 1, `"says": "size is size_t, was int"`},
		{"-h", 0, "usage: weft abi"},
		{"net v1", 2, "weft abi: this build has no net v1: it has v2 to v"},
		{"--json --table net v8", 2, "weft abi: --json and --table"},
		{"--nonsense", 2, "weft abi -h explains the flags"},
	} {
		var out, errOut bytes.Buffer
		status := execute(t.Context(), strings.Fields("abi "+c.args), &out, &errOut)
		text, other := out.String(), errOut.String()
		if c.status == 2 {
			text, other = other, text
		}
		if status != c.status || !strings.Contains(text, c.says) || other != "" {
			t.Errorf("weft abi %s: status %d, want %d and %q:\n%s%s", c.args, status, c.status, c.says, out.String(), errOut.String())
		}
		if strings.Contains(c.args, "--json") && status < 2 && !json.Valid(out.Bytes()) {
			t.Errorf("weft abi %s writes no JSON:\n%s", c.args, out.String())
		}
	}
}
