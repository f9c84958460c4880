package page

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTook(t *testing.T) {
	for ns, want := range map[int64]string{
		0: "0s", 7: "7ns", 999: "999ns", 8423: "8.42µs", 87_451: "87.5µs", 192_160_731: "192ms", -60_249: "-60.2µs", 12_345_678_901: "12.3s", 3_723_400_000_000: "1h2m3s",
	} {
		if got := took(ns); got != want {
			t.Errorf("%d ns: %q, want %q", ns, got, want)
		}
	}
}

func TestRamp(t *testing.T) {
	for _, c := range []struct {
		what   string
		values []float64
		want   []int
	}{
		{"nothing is known", []float64{0, 0}, []int{0, 0}},
		{"nearly the same", []float64{100, 101, 110}, []int{0, 0, 0}},
		{"twice as much is no extreme", []float64{100, 200}, []int{0, 3}},
		{"decades", []float64{1, 10, 100, 1000, 0}, []int{0, 2, 4, 6, 0}},
	} {
		r := newRamp(c.values)
		var got []int
		for _, v := range c.values {
			got = append(got, r.shade(v))
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s: %s", c.what, d)
		}
	}
}

func TestTicks(t *testing.T) {
	for _, c := range []struct {
		from, to int64
		want     []string
	}{
		{0, 0, []string{"0s"}},
		{0, 10, []string{"0s", "2ns", "4ns", "6ns", "8ns", "10ns"}},
		{0, 132_000, []string{"0s", "50µs", "100µs"}},
		{-500, 60_100, []string{"0s", "20µs", "40µs", "60µs"}},
		{-82_600, 82_600, []string{"-50µs", "0s", "50µs"}},
		{-1 << 62, 1 << 62, []string{"-1111111h6m40s", "-555555h33m20s", "0s", "555555h33m20s", "1111111h6m40s"}},
		{0, 45_000_000_000, []string{"0s", "10s", "20s", "30s", "40s"}},
	} {
		a := axis{from: c.from, to: c.to, at: 70, wide: 400}
		var got []string
		for _, tick := range a.ticks() {
			got = append(got, tick.Text)
			if tick.X < a.at || tick.X > a.at+a.wide {
				t.Errorf("%d to %d: %s lies at %s", c.from, c.to, tick.Text, tick.X)
			}
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%d to %d: %s", c.from, c.to, d)
		}
	}
}

func TestPixels(t *testing.T) {
	for v, want := range map[px]string{0: "0", 12: "12", 12.34: "12.3", -0.04: "0", 100000: "100000"} {
		if got := v.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
