package task

import (
	"testing"

	"golang.org/x/sys/unix"

	"weft/internal/report"
)

// TestNeedFiles lowers the soft limit below what is open: with room below the hard
// limit it is raised. (Without that room: internal/faults, in processes of its own.)
func TestNeedFiles(t *testing.T) {
	var was unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	defer unix.Setrlimit(unix.RLIMIT_NOFILE, &was)
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 3, Max: was.Max}); err != nil {
		t.Fatal(err)
	}
	log := new(report.Recorder)
	if err := NeedFiles(8, log); err != nil {
		t.Errorf("with room to raise the limit: %v", err)
	}
	if log.Count("INFO INIT raised the limit of open files from 3") != 1 {
		t.Errorf("log %q", log.Lines())
	}
}
