package main

import (
	"os"
	"runtime"
	"testing"

	"weft/internal/build"
	"weft/internal/simverbs"
)

// Instructions of a message do not depend on the machine's load. The bounds leave
// room for other compilers and small additions; what breaks them has put a
// general way where most messages had a short one.
func TestInstructionsPerMessage(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("instructions are counted by the trap flag of x86-64")
	}
	if os.Getenv(build.DistEnv) != "" {
		t.Skipf("%s names a library whose instructions are not the released one's", build.DistEnv)
	}
	c := &config{iface: "lo"}
	library, err := build.Library()
	if err != nil {
		t.Fatal(err)
	}
	if c.bothEnds, err = program("both"); err != nil {
		t.Fatal(err)
	}
	dist, err := simverbs.Dist()
	if err != nil {
		t.Fatal(err)
	}
	env, remove, err := world(dist, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer remove()
	one := 0.0
	for _, lanes := range []int{1, 8} {
		f, err := c.both(append(env, lanesEnv(lanes)...), library, "count=2000")
		if err != nil {
			t.Fatal(err)
		}
		message, idle := f["insn.plugin"][0], f["idle.plugin"][0]
		t.Logf("%d lanes: %.0f instructions per message, %.0f per idle test", lanes, message, idle)
		if one == 0 {
			one = message
		}
		switch {
		case f["insn.verbs"][0] < 500:
			t.Errorf("%d lanes: %.0f instructions in libibverbs: the messages went another way", lanes, f["insn.verbs"][0])
		case message > 2000 || idle > 260:
			t.Errorf("%d lanes: %.0f instructions per message, 2000 are allowed; %.0f per idle test, 260", lanes, message, idle)
		case message > 1.1*one:
			t.Errorf("%.0f instructions per message with %d lanes, %.0f with one", message, lanes, one)
		}
	}
}
