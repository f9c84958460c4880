package main

import (
	"bytes"
	"io"
	"net"
	"strings"
	"testing"

	"weft/internal/trace/rectest"
)

// rasService says to whoever asks that a rank of the communicator does not answer.
func rasService(t *testing.T) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	script := []string{"SERVER PROTOCOL 2\n", "OK\n", `{"nccl_version":"2.30.7","communicators":[{"hash":"0xc0ffee",
		"missing_ranks":[{"rank":5,"host":"10.0.0.2","pid":105,"status":{"unresponsive":true}}]}],"ras":{}}`}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			buf := make([]byte, 256)
			for _, reply := range script {
				if _, err := c.Read(buf); err != nil {
					break
				}
				if _, err := io.WriteString(c, reply); err != nil {
					break
				}
			}
			c.Close()
		}
	}()
	return l.Addr().String()
}

// TestTraceRAS holds what RAS says to what files say; the environment names it where the flag does not.
func TestTraceRAS(t *testing.T) {
	j := rectest.Job{Ranks: 8, PerMachine: 4, Iterations: 4, Version: 6}
	dir := traced(t, j)
	j.Late = map[int]uint64{5: 60_000}
	late, address := traced(t, j), rasService(t)
	t.Setenv("NCCL_RAS_ADDR", address)
	agrees := "NCCL's RAS (" + address + ", NCCL 2.30.7) agrees: it names rank 5 (node1:105) too\n  no answer in 0xc0ffee: rank 5, process 105 on 10.0.0.2\n"
	if shown := strings.Join(outputsIn(t, "docs/trace.md"), "\n"); !strings.Contains(shown, strings.TrimSpace(strings.Replace(agrees, address, "localhost:28028", 1))) {
		t.Errorf("docs/trace.md does not show %q", agrees)
	}
	for _, c := range []struct{ args, want string }{
		{"report --ras=" + address + " " + late, agrees},
		{"report --ras " + dir, "knows more: it names rank 5 (node1:105), of whom the files say nothing\n"},
		{"stall --ras " + dir, "nobody has waited for 2s or longer\nNCCL's RAS (" + address + ", NCCL 2.30.7) knows more: it names rank 5"},
		{"stall --ras " + waiting(t), "\n\nNCCL's RAS (" + address + ", NCCL 2.30.7) knows more: it names"},
		{"stall --json --ras " + dir, `"verdict": "knows more"`},
	} {
		var stdout, stderr bytes.Buffer
		if status := execute(t.Context(), strings.Fields("trace "+c.args), &stdout, &stderr); status != 1 || !strings.Contains(stdout.String(), c.want) || stderr.Len() > 0 {
			t.Errorf("%q: status %d, %q, want %q:\n%s", c.args, status, stderr.String(), c.want, stdout.String())
		}
	}
}
