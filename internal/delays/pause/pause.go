// Package pause holds the calls that package delays puts into copies of the product's sources: random pauses, where others may overtake.
package pause

import (
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"runtime"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// Env names the variable that says how often there is a pause: 1 to 9; 0 or unset: never.
const Env = "WEFT_TEST_DELAYS"

var level = must(parse(os.Getenv(Env)))

// must ends the process: a run without the pauses that were asked for would look like a good one.
func must(n int, err error) int {
	if err != nil {
		panic(err)
	}
	return n
}

func parse(value string) (int, error) {
	if value == "" {
		return 0, nil
	}
	if n, err := strconv.Atoi(value); err == nil && 0 <= n && n <= 9 {
		return n, nil
	}
	return 0, fmt.Errorf("%s=%s: want a level from 1 to 9, or 0 for no pauses", Env, value)
}

// Point pauses the caller once in a while: before it takes a lock, after it has left one, before it sends.
func Point() {
	if level == 0 {
		return
	}
	switch r := rand.IntN(1000); {
	case r < 3*level:
		nap(20 * time.Millisecond)
	case r < (3+30)*level:
		nap(500 * time.Microsecond)
	case rand.IntN(10) == 0:
		runtime.Gosched()
	}
}

// Late returns f as a function that begins with a pause: what go calls. f, a method value's receiver and the arguments are evaluated
// by the go statement, as without it.
func Late[F any](f F) F {
	if level == 0 {
		return f
	}
	v := reflect.ValueOf(f)
	call := v.Call
	if v.Type().IsVariadic() {
		call = v.CallSlice
	}
	return reflect.MakeFunc(v.Type(), func(args []reflect.Value) []reflect.Value {
		start()
		return call(args)
	}).Interface().(F)
}

// After returns unlock and a Point after it: what defer calls.
func After(unlock func()) func() {
	return func() {
		unlock()
		Point()
	}
}

// start is the pause of a new goroutine: longer ones, for goroutines are late on a busy machine.
func start() {
	switch r := rand.IntN(100); {
	case r < 3*level:
		nap(60 * time.Millisecond)
	case rand.IntN(10) < 3:
		nap(2 * time.Millisecond)
	}
}

// nap sleeps for up to d. time.Sleep would do so by a timer, for which the Go runtime opens descriptors: some tests have none left.
func nap(d time.Duration) {
	t := unix.NsecToTimespec(rand.Int64N(int64(d)))
	for unix.Nanosleep(&t, &t) == unix.EINTR {
	}
}
