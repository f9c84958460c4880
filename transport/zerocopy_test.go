package transport

import (
	"encoding/hex"
	"io"
	"testing"
)

// seeZeroCopy tells whether the kernel was asked to send without a copy, between two hosts: it says that it copied, since both
// are on this machine.
func seeZeroCopy(t *testing.T, env map[string]string) string {
	a, b := namespace(t, "zero-a"), namespace(t, "zero-b")
	cable(t, a, b, "10.213.81")
	in := func(ns, role, addr string) *peerProcess {
		return spawn(t, role, []string{"WEFT_ZEROCOPY=" + env["WEFT_ZEROCOPY"], childAddr + "=" + addr}, "ip", "netns", "exec", ns)
	}
	receiver, sender := in(b, "receives on", "10.213.81.2/24"), in(a, "sends on", "10.213.81.1/24")
	io.WriteString(sender.in, hex.EncodeToString(receiver.handle)+"\n")
	sender.says(t, "moving")
	io.WriteString(sender.in, "enough\n")
	copies := sender.says(t, "copies")
	for _, p := range []*peerProcess{sender, receiver} {
		if code := p.says(t, "code"); code != "0" {
			t.Errorf("code %s", code)
		}
	}
	for _, ns := range []string{a, b} {
		ip(t, "netns", "del", ns) // another call makes them anew
	}
	return copies
}
