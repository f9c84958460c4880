package nccl

import (
	"fmt"
	"net"
	"syscall"
	"testing"
	"time"

	"weft/internal/build"
	"weft/internal/trace"
	"weft/internal/trace/model"
	"weft/internal/trace/ras"
	"weft/internal/trace/stall"
)

// TestRAS asks the RAS service of a job, of which one rank does not call what the others have called, and then is stopped:
// each time it agrees with what the files say.
func TestRAS(t *testing.T) {
	each(t, func(t *testing.T, r Release) {
		if !r.Since(2, 24) {
			t.Skipf("%s has no RAS", r)
		}
		lib, err := build.Library()
		if err != nil {
			t.Fatal(err)
		}
		const ranks, late = 3, 1
		dir, address := t.TempDir(), free(t)
		run := start(t, Job{Release: r, Network: tcp(t, r), Ranks: ranks, Env: []string{
			"WEFT_PROFILE=trace", "WEFT_PROFILE_DIR=" + dir, "NCCL_PROFILER_PLUGIN=" + lib, "NCCL_RAS_ENABLE=1", "NCCL_RAS_ADDR=" + address,
		}}, "traffic", "ops=allreduce", "size=1M", "idle=20")
		for _, k := range run.Ranks {
			if _, err := k.Says("idle", patience); err != nil {
				t.Fatal(err)
			}
		}
		for _, k := range run.Ranks {
			if k.Number != late {
				if err := k.Go(); err != nil {
					t.Fatal(err)
				}
			}
		}
		victim := run.Ranks[late].Cmd.Process
		agrees(t, dir, address, victim.Pid, ras.Behind)
		if err := victim.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		agrees(t, dir, address, victim.Pid, ras.Silent)
	})
}

// agrees waits until RAS and the files name the process, RAS for this.
func agrees(t *testing.T, dir, address string, pid int, kind string) {
	t.Helper()
	var s *ras.Section
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(time.Second / 2) {
		look := stall.Here("/proc")
		files, bad, err := trace.Load([]string{dir})
		if err != nil || len(bad) != 0 {
			t.Fatal(err, bad)
		}
		job := model.New(files)
		accused := stall.New(job, look, time.Second).Files()
		a, err := ras.Ask(t.Context(), address)
		if err != nil {
			t.Fatal(err)
		}
		s = ras.Compare(a, job, accused)
		for _, f := range s.Findings {
			for _, w := range f.Who {
				if s.Verdict == ras.Agrees && f.Kind == kind && w.PID == int64(pid) && len(accused.Accused) == 1 {
					return
				}
			}
		}
	}
	t.Errorf("RAS %s: %s; it has found %v", s.Verdict, s.Why, s.Lines())
}

// free is an address at which nobody listens.
func free(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return fmt.Sprint(l.Addr())
}
