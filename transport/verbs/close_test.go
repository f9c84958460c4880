package verbs

import (
	"slices"
	"strings"
	"syscall"
	"testing"

	"weft/internal/knob"
	"weft/transport/verbs/mr"
)

// A provider closes a card as soon as nothing is left on it, whichever of its
// protection domains goes last, and makes nothing new on it meanwhile.
func TestCloseEndsWithTheLastUse(t *testing.T) {
	for _, order := range [][]int{{}, {0}, {1}, {0, 1}, {1, 0}} { // domains by the order in which they go
		lib, host, f := directCard(t)
		p, err := Open(Config{Knobs: knob.Parse(map[string]string{"NCCL_IB_DATA_DIRECT": "2"}), host: host, lib: lib})
		if err != nil {
			t.Fatal(err)
		}
		var pds [2]*mr.PD
		for _, i := range order {
			if pds[i], err = p.Devices()[i].AcquirePD(); err != nil {
				t.Fatal(err)
			}
		}
		open := func() bool {
			return slices.ContainsFunc(f.Left(), func(what string) bool { return strings.HasPrefix(what, "context of ") })
		}
		p.Close()
		p.Close()
		for n, i := range order {
			if !open() {
				t.Fatalf("%v: it is closed before domain %d", order, i)
			}
			if _, errno := p.Devices()[0].Card().QueryPort(1); errno != 0 {
				t.Errorf("%v: asked before the last of %d went: %v", order, len(order)-n, errno)
			}
			if _, err := p.Devices()[i].AcquirePD(); err == nil || !strings.Contains(err.Error(), "is being closed") {
				t.Errorf("%v: a domain of a card that is being closed: %v", order, err)
			}
			if err := pds[i].Release(); err != nil {
				t.Error(err)
			}
		}
		if left := f.Left(); left != nil {
			t.Errorf("%v: left %v", order, left)
		}
		_, err = p.Devices()[0].AcquirePD()
		if _, errno := p.Devices()[0].Card().QueryPort(1); err == nil || errno != syscall.ENODEV {
			t.Errorf("%v: a card that is closed returned %v, %v", order, err, errno)
		}
	}
}
