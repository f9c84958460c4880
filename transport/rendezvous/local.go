package rendezvous

import (
	"hash/fnv"
	"net/netip"
	"os"
	"slices"
	"sync"
	"time"

	"weft/internal/report"
	"weft/transport/tcp"
	"weft/transport/wire"
)

const localFresh = time.Second

// LocalAddrs remembers for a second which addresses this machine has.
type LocalAddrs struct {
	mu   sync.Mutex
	at   time.Time               // protected by mu
	have map[netip.Addr]struct{} // protected by mu
}

// has reports whether a is an address of this machine; when the kernel does
// not tell, everything counts as present.
func (l *LocalAddrs) has(a netip.Addr) bool {
	found, known := l.find(a)
	return found || !known
}

// Own reports whether a connection between these addresses stays on this
// machine; when the kernel does not tell which it has, only what they tell
// themselves counts.
func (l *LocalAddrs) Own(local, remote netip.Addr) bool {
	if local == remote || remote.IsLoopback() {
		return true
	}
	found, _ := l.find(remote)
	return found
}

// find looks a up; not known where the kernel does not tell.
func (l *LocalAddrs) find(a netip.Addr) (found, known bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := time.Now(); now.Sub(l.at) > localFresh {
		l.at, l.have = now, nil
		if all, err := tcp.Addresses(); err == nil {
			l.have = all
		}
	}
	_, found = l.have[a.Unmap().WithZone("")]
	return found, l.have != nil
}

// origin marks the network stack of this process: its boot and its network
// namespace, which is as far as loopback reaches. 0: unknown. Two marks that
// differ are two stacks; equal ones may be.
func origin() uint8 {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return 0
	}
	space, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		return 0
	}
	h := fnv.New32a()
	h.Write(boot)
	h.Write([]byte(space))
	return uint8(h.Sum32()%255) + 1
}

// Outside takes the addresses from h that lead back to this host, where the
// listener is on another; without any other there is nothing to try.
func (n *Network) Outside(h *wire.Handle) error {
	if h.Origin == 0 || n.Origin == 0 || h.Origin == n.Origin {
		return nil
	}
	all := h.Addrs
	h.Addrs = slices.DeleteFunc(slices.Clone(all), func(e wire.Endpoint) bool { return e.Addr.IsLoopback() })
	if len(h.Addrs) > 0 {
		return nil
	}
	peer := "the peer's host"
	if h.Host != "" {
		peer = "host " + h.Host
	}
	return report.Errorf(report.Peer, "connect", "%s listens at loopback only, at which no other host and no other container reaches it", peer).With(all[0].AddrPort().String()).
		Try("on %s let NCCL_SOCKET_IFNAME name an interface that the others reach (not lo), or unset it", peer)
}
