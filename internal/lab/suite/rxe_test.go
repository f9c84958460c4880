package suite

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// exceptions are what the conformance program expects, hardware does, and rxe does otherwise: Linux 6.1 with the libibverbs
// provider of rdma-core 44. Each is rxe's own fault, at the place named. simverbs/README.md shows them.
var exceptions = []struct {
	checks []string // how their names begin
	does   string
	where  string
}{
	{
		[]string{
			"bad remote key: so is a receive",
			"write across the end: so is a receive",
			"read with a bad key: so is a receive",
			"queue pair without remote write: so is a receive",
			"send longer than its receive: so is a receive",
		},
		"A receive posted in ERR is not flushed. Other devices flush it; the kernel's own users wait for that (`__ib_drain_rq`, core/verbs.c).",
		"`rxe_post_recv` of rdma-core, providers/rxe/rxe.c, only writes to the queue in shared memory. The kernel's `rxe_post_recv` (rxe_verbs.c), which would wake `rxe_responder`, is for the kernel's own users",
	},
	{
		[]string{
			"send longer than its receive: remote invalid request error expected",
			"send longer than its receive: its receive ends",
		},
		"The sender gets REM_OP_ERR, the receiver LOC_QP_OP_ERR, not REM_INV_REQ_ERR and LOC_LEN_ERR.",
		"`copy_data` (rxe_mr.c) returns EINVAL for more than is left of the receive, before it could return ENOSPC, and `send_data_in` (rxe_resp.c) takes that for a malformed receive",
	},
	{
		[]string{"bad local key: LOC_PROT_ERR"},
		"LOC_QP_OP_ERR.",
		"`copy_data` (rxe_mr.c) returns EINVAL when `lookup_mr` finds no region; `rxe_requester` (rxe_req.c) makes LOC_PROT_ERR of EFAULT only",
	},
	{
		[]string{"illegal transitions: post_send in INIT names the request"},
		"The call fails, `bad_wr` is NULL, and the request stays in the queue until RTS. (Devices differ here: hns refuses as simverbs does; mlx5 and mlx4 do not look.)",
		"`rxe_post_send` of rdma-core, providers/rxe/rxe.c, queues the request before the kernel's `rxe_post_send` (rxe_verbs.c) looks at the state",
	},
}

// exception is the check of the list that a check of the conformance program is, or "".
func exception(name string) string {
	for _, e := range exceptions {
		for _, c := range e.checks {
			if strings.HasPrefix(name, c) {
				return c
			}
		}
	}
	return ""
}

// judge reads the Test Anything Protocol. What rxe is said to do otherwise it must do otherwise.
func judge(t *testing.T, o *outcome) {
	t.Helper()
	passed, failed, known := 0, 0, 0
	for line := range strings.Lines(o.out.String()) {
		line = strings.TrimSpace(line)
		_, name, _ := strings.Cut(line, " - ")
		listed := exception(name)
		switch {
		case strings.HasPrefix(line, "ok ") && listed == "":
			passed++
		case strings.HasPrefix(line, "ok "):
			failed++
			t.Errorf("%s: rxe does it now, so it is no exception any more", line)
		case strings.HasPrefix(line, "not ok ") && listed != "":
			known++
			t.Logf("as rxe does it: %s", name)
		case strings.HasPrefix(line, "not ok "):
			failed++
			t.Error(line)
		case strings.HasPrefix(line, "#"):
			t.Log(line)
		}
	}
	want := 0
	for _, e := range exceptions {
		want += len(e.checks)
	}
	t.Logf("%d hold, %d do not, %d as rxe does them", passed, failed, known)
	if known != want && failed == 0 {
		t.Errorf("%d exceptions were met, %d are listed\n%s", known, want, o.text())
	}
	if o.err != nil || passed == 0 || o.status != 0 && failed+known == 0 {
		t.Errorf("status %d, %v\n%s", o.status, o.err, o.text())
	}
}

// What simverbs' README says of rxe is what the tests expect of it.
func TestExceptionsAreTold(t *testing.T) {
	const path = "../../../tools/simverbs/README.md"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var rows strings.Builder
	for _, e := range exceptions {
		fmt.Fprintf(&rows, "| %s | %s | %s |\n", strings.Join(e.checks, "<br>"), e.does, e.where)
	}
	if !strings.Contains(string(text)+"\n", "|---|---|---|\n"+rows.String()+"\n") {
		t.Errorf("%s: the table of rxe's exceptions should be:\n%s", path, rows.String())
	}
}
