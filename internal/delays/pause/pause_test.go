package pause

import (
	"strings"
	"sync"
	"testing"
)

func TestLevels(t *testing.T) {
	for _, c := range []struct {
		value string
		want  int
		fails bool
	}{
		{"", 0, false}, {"0", 0, false}, {"1", 1, false}, {"9", 9, false},
		{"10", 0, true}, {"-1", 0, true}, {"much", 0, true},
	} {
		got, err := parse(c.value)
		if got != c.want || (err != nil) != c.fails || c.fails && !strings.Contains(err.Error(), Env+"="+c.value) {
			t.Errorf("%q: %d, %v", c.value, got, err)
		}
	}
}

type box struct{ n int }

func (b box) read(to chan<- int)          { to <- b.n }
func sum(to chan<- int, all ...int) error { to <- len(all) + all[0]; return nil }

// What a go statement evaluates, it evaluates at once, pause or not.
func TestLate(t *testing.T) {
	defer func(l int) { level = l }(level)
	for level = range 10 {
		to, b, n := make(chan int, 3), box{1}, 10
		go Late(b.read)(to)
		b.n = 2
		if got := <-to; got != 1 {
			t.Errorf("level %d: the receiver was read late: %d", level, got)
		}
		go Late(func(v int) { to <- v })(n)
		n = 20
		if got := <-to; got != 10 {
			t.Errorf("level %d: the argument was read late: %d", level, got)
		}
		go Late(sum)(to, 5, 6, 7)
		if got := <-to; got != 8 {
			t.Errorf("level %d: variadic arguments came as %d", level, got)
		}
	}
}

// A deferred unlock is of the mutex that was meant at the defer statement.
func TestAfter(t *testing.T) {
	defer func(l int) { level = l }(level)
	for level = range 10 {
		var first, second sync.Mutex
		func() {
			mu := &first
			mu.Lock()
			defer After(mu.Unlock)()
			Point()
			mu = &second // After keeps the one that it was given
			_ = mu
		}()
		if !first.TryLock() {
			t.Errorf("level %d: still locked", level)
		}
	}
}
