package main

import (
	"slices"
	"testing"
)

func TestParseMPI(t *testing.T) {
	for _, c := range []struct {
		out  string
		want []timed
	}{
		{"8 20.382\n1024 22.609\n", []timed{{8, 20.382}, {1024, 22.609}}},
		{"", nil},
		{"8 20.382 us\n", nil},
		{"8 20.382\nAuthorization required\n", nil},
		{"8 -1\n", nil},
		{"x 1\n", nil},
	} {
		got, err := parseMPI(c.out)
		if !slices.Equal(got, c.want) || (err == nil) != (c.want != nil || c.out == "") {
			t.Errorf("%q: %v, %v; want %v", c.out, got, err, c.want)
		}
	}
}
