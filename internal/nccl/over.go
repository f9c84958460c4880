package nccl

import (
	"fmt"
	"regexp"
)

// OverEnv has the log say what Over wants to know, and nothing of single messages.
const OverEnv = "NCCL_DEBUG_SUBSYS=INIT,NET"

// Over is an error unless every rank has sent over its network, and over no other.
func (r *Run) Over() error {
	for _, k := range r.Ranks {
		log, err := r.Log(k.Number)
		if err != nil {
			return err
		}
		if err := r.Network.carried(log); err != nil {
			return fmt.Errorf("rank %d: %s was asked for: %w", k.Number, r.Network.Name, err)
		}
	}
	return nil
}

var (
	sends = regexp.MustCompile(`\[send\] via NET/(\w+)/`)
	// What weft says of each connection, and NCCL's own networks of their devices.
	goes = regexp.MustCompile(`^NET/(\w+) : (?:.*\) over |Using \[0\])([a-z]+)`)
)

// carried reads the log of a rank.
func (n Network) carried(log []Line) error {
	sent, told := 0, 0
	for _, l := range log {
		if m := sends.FindStringSubmatch(l.Text); m != nil {
			if m[1] != n.via[0] {
				return fmt.Errorf("the log says %q", l.Text)
			}
			sent++
		}
		if m := goes.FindStringSubmatch(l.Text); m != nil && m[1] == n.via[0] {
			if m[2] != n.via[1] {
				return fmt.Errorf("the log says %q", l.Text)
			}
			told++
		}
	}
	if sent == 0 || told == 0 {
		return fmt.Errorf("of %d lines of the log %d tell of sends, %d of NET/%s over %s", len(log), sent, told, n.via[0], n.via[1])
	}
	return nil
}
