package main

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestOneOfEach runs a campaign of one fault of each kind that no other test has, over each network, on hosts of tools/host:
// each is named, however long that takes here.
func TestOneOfEach(t *testing.T) {
	t.Parallel()
	if out, err := exec.Command("unshare", "-Urnm", "ip", "link", "add", "w", "type", "bridge").CombinedOutput(); err != nil {
		t.Skipf("no networks of one's own here: %v %s", err, out)
	}
	bin := filepath.Join(t.TempDir(), "campaign")
	if out, err := exec.Command("go", "build", "-o", bin, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	cmd := exec.CommandContext(t.Context(), bin, "-n", "8", "-seed", "1", "-parallel", "4", "-programs", "ring", "-lenient", "-kinds", "dead NIC,lossy path,slow link,slow receiver")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil || !strings.Contains(out.String(), "all") {
		t.Errorf("%v\n%s", err, out.String())
	}
}

// What lines of the log accuse whom of.
func TestAccused(t *testing.T) {
	const me = 7
	for _, c := range []struct {
		text string
		want *charge
	}{
		{"NET/weft : stall: send to n:8 (eth0 -> eth0) has waited 3s: that process does not reply, though its machine does: it is stopped", &charge{what: stands, pid: 8}},
		{"NET/weft : stall: receive from n:8 (sim0 <- sim1) has waited 3.4s, with 1 more connection of these devices: its NCCL has sent nothing; that process runs and waits itself for n:9 to send, for 2.6s; n:9 runs and waits for nobody", &charge{what: isLate, pid: 9}},
		{"NET/weft : stall: receive from n:8 (sim0 <- sim1) has waited 3s: its NCCL has sent nothing; that process runs and waits itself for n:9 to send, for 2.6s", nil},
		{"NET/weft : stall: receive from n:8 (sim0 <- sim1) has waited 3s: its NCCL has sent it, and it has not come; check the path between the two devices [WEFT-130 WEFT-135 WEFT-165]", &charge{what: path, pid: 8, to: me}},
		{"NET/weft : stall: send to n:8 (sim0 -> sim1) has waited 3s: its NCCL waits for it, and what was sent is not acknowledged; check the path between the two devices [WEFT-130 WEFT-135 WEFT-165]", &charge{what: path, pid: me, to: 8}},
		{"NET/weft : stall: send to n:8 (sim0 -> sim1) has waited 3s: its NCCL has posted no receive; that process runs and waits itself for n:9 to send, for 2s; root cause: the path from n:10 to n:9 does not deliver what was sent", &charge{what: path, pid: 10, to: 9}},
		{"NET/weft : stall: send to n:8 (eth0 -> eth0) has waited 3s: nothing passes here: eth0: the link is down", &charge{what: unplugged, pid: me}},
		{"NET/weft : stall: send to n:8 (eth0 -> eth0) moves again, after 3s", nil},
		{"NET/weft : loss: 5.0% of the packets to n:8 (eth0 -> eth0) were retransmitted in the last 1.5s: packet loss on the path from n:7 to n:8 [WEFT-137 WEFT-138 WEFT-143]", &charge{what: path, pid: 7, to: 8}},
		{"NET/weft : liveness on sim0 with vm pid 8 (127.0.0.1:1): 1 connection made no progress for 2s or more, and port 10.9.1.3 does not answer 10.9.1.1", &charge{what: path, pid: me, to: 8, either: true}},
		{"NET/weft : interface 0 is lo", nil},
	} {
		got := accused(c.text, me)
		if (got == nil) != (c.want == nil) || got != nil && *got != *c.want {
			t.Errorf("%s: %+v, want %+v", c.text, got, c.want)
		}
	}
}
