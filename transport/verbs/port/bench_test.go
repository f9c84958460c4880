package port

import (
	"testing"

	"weft/internal/fakeibv"
	"weft/internal/report"
	"weft/transport/verbs/gid"
	"weft/transport/verbs/machine"
	"weft/transport/verbs/mr"
)

// find makes the device of the first port of the library's first card, which closes
// with the test, or says why there is none.
func find(t *testing.T, f *fakeibv.Lib, host *machine.Machine, env map[string]string) (*Device, string, *report.Recorder) {
	t.Helper()
	c, log := f.Open(host, env)
	t.Cleanup(func() {
		c.Close()
		if left := f.Left(); left != nil {
			t.Errorf("left: %v", left)
		}
	})
	rules, _ := gid.RulesOf(c.Lib.Knobs)
	links, err := host.Links()
	if err != nil {
		t.Fatal(err)
	}
	d, why := Find(&Choice{Rules: &rules, Links: links}, c, mr.DomainsOf(c), 1)
	return d, why, log
}

// used is find where the port is used.
func used(t *testing.T, f *fakeibv.Lib, host *machine.Machine, env map[string]string) (*Device, *report.Recorder) {
	t.Helper()
	d, why, log := find(t, f, host, env)
	if d == nil {
		t.Fatal(why, log.Lines())
	}
	return d, log
}

// lan is a machine with one network device, in 10.0.0.0/24.
func lan(t *testing.T) *machine.Machine {
	return fakeibv.Host(t, fakeibv.Eth(1, true, "10.0.0.1/24"))
}
