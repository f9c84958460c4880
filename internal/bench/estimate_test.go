package main

import (
	"fmt"
	"slices"
	"testing"
)

func TestEstimate(t *testing.T) {
	ten := []float64{1.001, 1.002, 1.003, 1.004, 1.005, 1.006, 1.007, 1.008, 1.009, 1.010} // bounds are the second and the ninth
	for _, c := range []struct {
		of   []float64
		part float64
		want string
	}{
		{ten, 0.01, "1.0055 (1.0020 to 1.0090), within 1.0 %"},
		{ten, 0.001, "1.0055 (1.0020 to 1.0090), MORE than 0.1 %"},
		{ten, 0.005, "1.0055 (1.0020 to 1.0090), whether within 0.5 % cannot be told from noise here"},
		{ten, 0.003, "1.0055 (1.0020 to 1.0090), whether within 0.3 % cannot be told from noise here; resolved here: 0.35 %; 0.3 % takes about 14 rounds"},
		{ten[:5], 0.01, "1.0030 (too few rounds), whether within 1.0 % cannot be told from noise here"},
	} {
		e := estimateOf(c.of)
		if got := fmt.Sprintf("%.4f, %s", e, e.judgeRatio(c.part)); got != c.want {
			t.Errorf("%v, %v: %q, want %q", c.of, c.part, got, c.want)
		}
	}
	one := slices.Repeat([]float64{1}, len(ten))
	if r := ratioOf(ten, one); r != estimateOf(ten) {
		t.Errorf("beside 1: %v", r)
	}
	if d := more(ten, ten).in(100); d != (estimate{0, 0, 0, 10}) {
		t.Errorf("more than itself: %v", d)
	}
}
