package tcp

import (
	"fmt"
	"testing"

	"weft/internal/knob"
	"weft/internal/report"
)

// effects are the knobs that choose interfaces: a setting, and what is seen
// without and with it. A test of internal/knob reads the names.
var effects = []struct {
	name, value   string
	without, with string
}{
	{"NCCL_SOCKET_IFNAME", "=eth1,six0", "[eth0:10.0.0.5 eth1:10.0.1.5 eth10:10.0.3.5 six0:fd00::6]", "[eth1:10.0.1.5 six0:fd00::6]"},
	{"NCCL_SOCKET_FAMILY", "AF_INET6", "[eth0:10.0.0.5 eth1:10.0.1.5 eth10:10.0.3.5 six0:fd00::6]", "[eth0:2001:db8::5 six0:fd00::6]"},
	{"NCCL_COMM_ID", "10.0.2.77:4000", "[eth0:10.0.0.5 eth1:10.0.1.5 eth10:10.0.3.5 six0:fd00::6]", "[eth1:10.0.2.5]"},
}

func TestKnobsHaveTheirEffect(t *testing.T) {
	see := func(env map[string]string) string {
		devices, err := machine(office...).Devices(knob.Parse(env), report.Discard{})
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, d := range devices {
			names = append(names, d.String())
		}
		return fmt.Sprint(names)
	}
	for _, e := range effects {
		if got := see(nil); got != e.without {
			t.Errorf("%s unset: %s, want %s", e.name, got, e.without)
		}
		if got := see(map[string]string{e.name: e.value}); got != e.with {
			t.Errorf("%s=%s: %s, want %s", e.name, e.value, got, e.with)
		}
	}
}
