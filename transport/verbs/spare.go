package verbs

import "syscall"

// Spare has f give up what nobody needs when a card has no queue pair or no
// completion queue left; f reports whether there was anything. It is set before
// the devices are used.
func (p *Provider) Spare(f func() bool) { p.spare = f }

// spares reports whether a call that failed may fare better now.
func (p *Provider) spares(errno syscall.Errno) bool {
	return (errno == syscall.ENOMEM || errno == syscall.ENOSPC) && p.spare != nil && p.spare()
}
