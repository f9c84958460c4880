package transport

import (
	"net"
	"net/netip"
	"sync"
	"time"
)

const localFresh = time.Second

// localAddrs remembers for a second which addresses this machine has.
type localAddrs struct {
	mu   sync.Mutex
	at   time.Time               // protected by mu
	have map[netip.Addr]struct{} // protected by mu
}

// has reports whether a is an address of this machine; when the kernel does
// not tell, everything counts as present.
func (l *localAddrs) has(a netip.Addr) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := time.Now(); now.Sub(l.at) > localFresh {
		all, err := net.InterfaceAddrs()
		l.at, l.have = now, nil
		if err == nil {
			l.have = make(map[netip.Addr]struct{}, len(all))
		}
		for _, a := range all {
			if n, ok := a.(*net.IPNet); ok {
				if ip, ok := netip.AddrFromSlice(n.IP); ok {
					l.have[ip.Unmap()] = struct{}{}
				}
			}
		}
	}
	if l.have == nil {
		return true
	}
	_, ok := l.have[a.Unmap().WithZone("")]
	return ok
}
