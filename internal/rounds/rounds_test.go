package rounds

import (
	"errors"
	"testing"
	"time"
)

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		of   []float64
		want float64
	}{{nil, 0}, {[]float64{7}, 7}, {[]float64{9, 1, 4}, 4}, {[]float64{8, 2, 4, 1}, 3}} {
		if got := Median(c.of); got != c.want {
			t.Errorf("Median(%v) = %v, not %v", c.of, got, c.want)
		}
	}
}

// What the processes of the measurement use is no disturbance; what fails ends the rounds.
func TestCalmly(t *testing.T) {
	n := 0
	disturbed, err := Calmly(func() time.Duration { return time.Duration(n) * time.Hour }, func() error { n++; return nil })
	if disturbed || err != nil || n != 1 {
		t.Errorf("disturbed %v after %d rounds, %v", disturbed, n, err)
	}
	why := errors.New("why")
	if _, err := Calmly(func() time.Duration { return 0 }, func() error { return why }); !errors.Is(err, why) {
		t.Errorf("the round failed, Calmly says %v", err)
	}
}
