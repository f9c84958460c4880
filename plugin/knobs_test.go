package plugin

import (
	"fmt"
	"strings"
	"testing"

	"weft/abi"
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

// effects are the knobs whose effect is in this package: what is seen after an init without and with the setting.
var effects = []struct {
	name, value   string
	see           func(b *bench) string
	without, with string
}{
	{"WEFT_LOG_LEVELS", "ncclx", levelOfInfo, "3", "4"},
	{"WEFT_PROFILE", "trace", func(b *bench) string { return fmt.Sprint(len(b.records)) }, "0", "1"},
	{"WEFT_PROFILE_EVENTS", "Coll, p2p", func(b *bench) string { return fmt.Sprintf("%#x", b.profile.events) }, "0xffdf", "0x6"},
	{"WEFT_PROFILE_DIR", "/fast", func(b *bench) string { return b.records[0].Dir }, "/tmp", "/fast"},
	{"WEFT_PROFILER_CHAIN", "/opt/one.so", func(b *bench) string {
		var context uintptr
		var mask int32
		if err := b.profiler.Init(&abi.ProfilerInitArgs{Table: 6, Context: &context, EActivationMask: &mask}); err != nil {
			return err.Error()
		}
		return strings.Join(b.host.chain, " ")
	}, "", "/opt/one.so"},
	{"WEFT_COLLNET", "1", func(b *bench) string { return fmt.Sprint(b.collDevices(b.t)) }, "0", "2"},
	{"WEFT_COLLNET_CHUNK", "64", func(b *bench) string { return fmt.Sprint(b.collOptions().Chunk >> 10) }, "512", "64"},
	{"WEFT_PROFILE_SIZE", "3", func(b *bench) string { return fmt.Sprint(b.records[0].Bytes) }, "67108864", "3145728"},
}

// levelOfInfo is the number of a line of information.
func levelOfInfo(b *bench) string {
	for _, s := range b.host.said {
		if strings.Contains(s.text, version.String()) {
			return fmt.Sprint(s.level)
		}
	}
	return "none"
}

func TestEffects(t *testing.T) {
	for _, c := range effects {
		for value, want := range map[string]string{"": c.without, c.value: c.with} {
			env := map[string]string{"WEFT_PROFILE": "trace", c.name: value}
			b := newBench(t, env)
			b.mustInit(abi.NetNewest)
			if got := c.see(b); got != want {
				t.Errorf("%s=%s: %s, want %s", c.name, value, got, want)
			}
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
	b.mustInit(abi.NetNewest)
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
