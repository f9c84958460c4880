// Package effect judges a knob by what a test sees without its setting and with it.
package effect

import "testing"

// Check has see look with nothing set and with name=value, as a test of its own.
func Check(t *testing.T, name, value, without, with string, see func(t *testing.T, env map[string]string) string) {
	t.Run(name, func(t *testing.T) {
		if got := see(t, map[string]string{}); got != without {
			t.Errorf("unset: %q, want %q", got, without)
		}
		if got := see(t, map[string]string{name: value}); got != with {
			t.Errorf("%s: %q, want %q", value, got, with)
		}
	})
}
