package guest

import (
	"testing"
	"time"
)

// A thread of the host's needs no place; Go's have as many as there are, and one more waits until its deadline or a place is free.
func TestPlaces(t *testing.T) {
	p := make(Places, 2)
	for range 5 { // a test's threads are not ones that package guest made
		p.Take()()
		p.TakeWithin(0)()
	}
	first, second := p.take(0), p.take(0)
	if first == nil || second == nil {
		t.Fatal("there are two places")
	}
	if p.take(time.Millisecond) != nil {
		t.Fatal("there is a third")
	}
	taken := make(chan func())
	go func() { taken <- p.take(time.Minute) }()
	first()
	third := <-taken
	if third == nil {
		t.Fatal("a place that was given back is not taken")
	}
	second()
	third()
	if len(p) != 0 {
		t.Errorf("%d places are not given back", len(p))
	}
}
