package probe

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"sync"
)

// Answerer answers the packets of probers with their heads, until it is closed. An answer is never longer than what it answers.
type Answerer struct {
	conns []net.PacketConn
	wg    sync.WaitGroup
}

// Open has it answer at an address of an interface too, and returns where.
func (a *Answerer) Open(dev string, at netip.Addr) (netip.AddrPort, error) {
	l := net.ListenConfig{Control: control(dev)}
	c, err := l.ListenPacket(context.Background(), "udp", netip.AddrPortFrom(at, 0).String())
	if err != nil {
		return netip.AddrPort{}, err
	}
	conn := c.(*net.UDPConn)
	a.conns = append(a.conns, conn)
	a.wg.Go(func() { answer(conn) })
	return conn.LocalAddr().(*net.UDPAddr).AddrPort(), nil
}

// Close ends it.
func (a *Answerer) Close() {
	for _, c := range a.conns {
		c.Close()
	}
	a.wg.Wait()
}

func answer(conn *net.UDPConn) {
	b := make([]byte, 64<<10)
	for {
		n, from, err := conn.ReadFromUDPAddrPort(b)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil || n < head || string(b[:8]) != magic || int(binary.BigEndian.Uint32(b[20:])) != n {
			continue // what a router says of an answer, or a stranger's
		}
		_, _ = conn.WriteToUDPAddrPort(b[:head], from) // one that is lost is asked for again
	}
}
