package nccl

import (
	"os"
	"slices"
	"testing"
)

// What a run in peace may say is judged line by line: warnings of whomever, and lines of weft that nobody has listed.
func TestUnwanted(t *testing.T) {
	r := &Run{Job: Job{Dir: t.TempDir()}, Ranks: []*Rank{{Number: 0}}}
	log := `vm:7:7 [0] NCCL INFO Bootstrap: Using lo:127.0.0.1<0>
vm:7:7 [0] NCCL INFO NET/weft : weft 0.1.0-dev (0123abc), first used through table v12
vm:7:9 [0] NCCL INFO NET/weft : nobody has listed this
vm:7:9 [0] fault.go:171 NCCL WARN NET/weft : irecv on lo with lo of vm pid 8: the peer closed stream 0
[2026-11-22 19:31:04] vm:7:7 [0] src/proxy.cc:67 NCCL WARN something of NCCL's own
[2026-11-22 19:31:04] vm:7:7 [0] src/transport/net_ib/init.cc:67 (ncclIbGetPciPath) NCCL WARN Could not find real path of sim0 (/sys/class/infiniband/sim0/device)
`
	if err := os.WriteFile(r.logFile(0), []byte(log), 0o644); err != nil {
		t.Fatal(err)
	}
	got, err := r.Unwanted()
	want := []string{
		"rank 0: INFO NET/weft : nobody has listed this",
		"rank 0: WARN NET/weft : irecv on lo with lo of vm pid 8: the peer closed stream 0",
		"rank 0: WARN something of NCCL's own",
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v: %q, want %q", err, got, want)
	}
}

func TestSettingsOfRanks(t *testing.T) {
	got := join([]string{"A=1", "LD_LIBRARY_PATH=/x"}, []string{"B=2", "LD_LIBRARY_PATH=/y"}, []string{"A=3"})
	if want := []string{"A=3", "LD_LIBRARY_PATH=/x:/y", "B=2"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
