package record

import (
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// What the kernel says of threads, of which some end meanwhile, and others are not known to wait.
func TestRunDelays(t *testing.T) {
	dir := t.TempDir()
	for tid, text := range map[string]string{"7": "100 250 3\n", "8": "0 0 0\n", "9": "5", "10": "1 x 1\n", "11": "", "x": "1 9 1\n"} {
		if err := os.MkdirAll(filepath.Join(dir, tid), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, tid, "schedstat"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "12"), 0o700); err != nil { // it has just ended
		t.Fatal(err)
	}
	if got := runDelays(dir); !maps.Equal(got, map[int]time.Duration{7: 250, 8: 0}) {
		t.Errorf("%v", got)
	}
	if got := runDelays(filepath.Join(dir, "nothing")); len(got) != 0 {
		t.Errorf("of a machine that does not tell: %v", got)
	}
}

func TestLongestDelay(t *testing.T) {
	before := map[int]time.Duration{1: 50, 2: 10, 3: 900}
	for _, c := range []struct {
		after map[int]time.Duration
		want  time.Duration
	}{
		{map[int]time.Duration{1: 60, 2: 40}, 30},
		{map[int]time.Duration{1: 50, 2: 10, 3: 900}, 0},
		{map[int]time.Duration{1: 51, 4: 500}, 1}, // 4 is new: since when it waits is not known
		{nil, 0},
	} {
		if got := longestDelay(before, c.after); got != c.want {
			t.Errorf("%v: %v, want %v", c.after, got, c.want)
		}
	}
}
