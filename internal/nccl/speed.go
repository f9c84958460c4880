package nccl

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"
)

// Speed is how long an operation took, of the batches that rank 0 has timed.
type Speed struct {
	Op            string
	Bytes         int64
	Median, Least float64 // microseconds
}

// Timed runs a job of mode speed, which has these sizes, over its network and no other, and returns how long operations took
// and the CPU time of its processes. The logs of a job that failed stay where the error says.
func Timed(ctx context.Context, j Job, sizes ...string) (speeds []Speed, used time.Duration, err error) {
	if j.Dir, err = os.MkdirTemp("", "weft-nccl-"); err != nil {
		return nil, 0, err
	}
	j.Mode, j.Env = append([]string{"speed", "sizes=" + strings.Join(sizes, ",")}, j.Mode...), append([]string{OverEnv}, j.Env...)
	run, err := Start(ctx, j)
	if err == nil {
		err = run.Wait()
		run.Stop()
	}
	if err == nil {
		err = run.Over()
	}
	if err == nil {
		speeds, err = run.Speeds()
	}
	if err == nil && len(speeds) != len(sizes) {
		err = fmt.Errorf("%d of %d sizes were timed; rank 0 said:\n%s", len(speeds), len(sizes), run.Ranks[0].Said())
	}
	if err != nil {
		return nil, 0, fmt.Errorf("%w\nlogs are in %s", err, j.Dir)
	}
	return speeds, run.CPU(), os.RemoveAll(j.Dir)
}

// Speeds are those that mode speed of the driver has said.
func (r *Run) Speeds() (list []Speed, err error) {
	for _, l := range r.Ranks[0].all() {
		_, text, found := strings.Cut(l, "rank 0: speed ")
		if !found {
			continue
		}
		var s Speed
		if _, err := fmt.Sscanf(text, "%s %d bytes: median %f us, least %f us", &s.Op, &s.Bytes, &s.Median, &s.Least); err != nil {
			return nil, fmt.Errorf("rank 0 says %q, which is no speed: %w", l, err)
		}
		list = append(list, s)
	}
	return list, nil
}

// CPU is what the processes of a run that has ended used.
func (r *Run) CPU() (sum time.Duration) {
	for _, k := range r.Ranks {
		k.mu.Lock()
		if k.ended {
			sum += k.Cmd.ProcessState.UserTime() + k.Cmd.ProcessState.SystemTime()
		}
		k.mu.Unlock()
	}
	return sum
}
