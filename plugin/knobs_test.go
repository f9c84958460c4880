package plugin

import (
	"fmt"
	"testing"

	"weft/internal/knob"
	"weft/internal/version"
)

// legal is a setting that the knob takes, its default if it has one.
func legal(s knob.Spec) string {
	if s.Type == knob.Choice {
		return s.Choices[0]
	}
	return fmt.Sprint(s.Default)
}

// effects are the knobs whose effect is in this package, and what a line of information is numbered then.
var effects = []struct {
	name, value string
	info        int32
}{
	{"WEFT_LOG_LEVELS", "ncclx", 4},
}

func TestEffects(t *testing.T) {
	for _, c := range effects {
		b := newBench(t, map[string]string{c.name: c.value})
		b.mustInit(12)
		if len(b.host.lines(c.info, version.String())) != 1 {
			t.Errorf("%s=%s: %v", c.name, c.value, b.host.said)
		}
	}
}

// A knob without an effect says so and why, in one line, wherever NCCL would
// have taken the value.
func TestInertKnobsSaySo(t *testing.T) {
	env := map[string]string{}
	for _, s := range knob.All() {
		if s.Inert != "" {
			env[s.Name] = legal(s)
		}
	}
	b := newBench(t, env)
	b.mustInit(12)
	b.mustInit(4)
	if w := b.host.lines(levelWarn); len(w) != 0 {
		t.Errorf("warnings %v", w)
	}
	for _, s := range knob.All() {
		want := 0
		if s.Inert != "" {
			want = 1
		}
		if got := b.host.lines(levelInfo, s.Name+"=", "is accepted and changes nothing here: "+s.Inert); len(got) != want {
			t.Errorf("%s: %d lines, want %d", s.Name, len(got), want)
		}
	}
}
