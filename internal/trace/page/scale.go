package page

import (
	"fmt"
	"math"
	"strconv"
	"time"
	"unicode/utf8"
)

// px is a length in a picture.
type px float64

func (p px) String() string { return strconv.FormatFloat(math.Round(float64(p)*10)/10+0, 'f', -1, 64) }

// took writes a time so that it has three digits or so.
func took[T int | int64 | uint64](ns T) string {
	d := time.Duration(ns)
	step := time.Duration(1)
	for limit := time.Duration(1000); d.Abs() >= limit && step < time.Second; limit *= 10 {
		step *= 10
	}
	return d.Round(step).String()
}

// anyTook is took for the layout, whose times are of several types.
func anyTook(ns any) (string, error) {
	switch v := ns.(type) {
	case int64:
		return took(v), nil
	case uint64:
		return took(v), nil
	}
	return "", fmt.Errorf("%T is no time", ns)
}

// cut shortens a text for a place in a picture.
func cut(text string, most int) string {
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most-1]) + "…"
}

// shades of a grid, from faint to strong.
const shades = 7

// ramp gives values shades, in steps of equal ratios.
type ramp struct{ least, most float64 }

// leastRatio of a ramp's ends: values that are nearly the same look so.
const leastRatio = 4

func newRamp(values []float64) ramp {
	var r ramp
	for _, v := range values {
		if v > 0 && (r.least == 0 || v < r.least) {
			r.least = v
		}
		r.most = max(r.most, v)
	}
	r.most = max(r.most, leastRatio*r.least)
	return r
}

func (r ramp) shade(v float64) int {
	if v <= r.least {
		return 0
	}
	return min(int(math.Log(v/r.least)/math.Log(r.most/r.least)*shades), shades-1)
}

// axis is of times.
type axis struct {
	from, to int64 // ns
	at, wide px    // where it lies in the picture
}

// span is no difference of integers: what a damaged file claims may be further apart than one can tell.
func (a axis) span() float64 { return max(float64(a.to)-float64(a.from), 1) }

func (a axis) x(ns int64) px { return a.at + a.wide*px((float64(ns)-float64(a.from))/a.span()) }

// tick is a line of an axis with its time.
type tick struct {
	X    px
	Text string
}

// ticks are about five, at round times.
func (a axis) ticks() []tick {
	step := math.Pow(10, math.Floor(math.Log10(max(a.span()/5, 1))))
	for _, by := range []float64{2, 2.5, 2} { // 1, 2, 5, 10
		if a.span()/step > 6 {
			step *= by
		}
	}
	var all []tick
	for v := math.Ceil(float64(a.from)/step) * step; v <= float64(a.to); v += step {
		all = append(all, tick{a.x(int64(v)), time.Duration(v).String()})
	}
	return all
}

// plural writes a number of things.
func plural(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}
