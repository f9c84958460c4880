package stall

import (
	"weft/internal/owner"
	"weft/internal/trace/model"
)

// Here says how the processes of this machine and this container are, and of others
// nothing. The time is that of this call. proc is /proc.
func Here(proc string) func(*model.Process) Life {
	look := owner.Here(proc)
	return func(p *model.Process) Life { return look(&p.Header.Owner) }
}
