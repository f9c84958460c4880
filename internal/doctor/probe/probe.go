// Package probe finds the largest packet that passes from one host to another, by UDP packets that must not be cut. It knows
// addresses and sizes; what they mean for NCCL the doctor says.
package probe

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// What a path does to packets of a size it tells by order, not by time: behind those of the sizes in question goes a small one, the
// witness. A size counts as lost only where several witnesses that were sent after it came back, and it did not; where no witness
// comes back, nothing is known.
const (
	witness = 576
	tries   = 3
	again   = 100 * time.Millisecond // until a witness is sent once more
	grace   = 20 * time.Millisecond  // for what the witness has overtaken
)

// The head of a packet: magic, the prober's number, the round, the length of the packet. The rest is zeros; the head alone comes back.
const (
	magic = "weftpath"
	head  = 24
)

// prober is one end of a path.
type prober struct {
	conn    *net.UDPConn
	headers int // of IP and UDP
	id      uint64
	round   uint32
	end     time.Time
	told    bool  // the kernel or a router has said that a packet is too large
	cause   error // the last that a system call said
}

// Largest is the largest packet that passes from an address of the interface to another host's Answerer, with the headers of IP, of
// full bytes at most. told: where a router has said that larger ones do not. An error: nothing is known, for not even small ones
// come back.
func Largest(ctx context.Context, dev string, from netip.Addr, to netip.AddrPort, full int) (passes int, told bool, err error) {
	p := &prober{headers: headersOf(from)}
	var id [8]byte
	rand.Read(id[:])
	p.id = binary.BigEndian.Uint64(id[:])
	var ok bool
	if p.end, ok = ctx.Deadline(); !ok {
		return 0, false, errors.New("probe: no deadline")
	}
	d := net.Dialer{LocalAddr: net.UDPAddrFromAddrPort(netip.AddrPortFrom(from, 0)), Control: control(dev)}
	conn, err := d.DialContext(ctx, "udp", to.String())
	if err != nil {
		return 0, false, err
	}
	defer conn.Close()
	p.conn = conn.(*net.UDPConn)
	if _, err := p.lost(nil); err != nil { // is there an answer at all?
		return 0, false, err
	}
	low, high := min(witness, full), full+1
	for sizes := []int{full}; high-low > 1; sizes = between(low, high) {
		lost, err := p.lost(sizes)
		if err != nil {
			if high > full {
				return 0, false, err
			}
			break // the time is over; what has passed has passed
		}
		for _, s := range sizes {
			if slices.Contains(lost, s) {
				high = s
				break
			}
			low = s
		}
	}
	return low, p.told, nil
}

// between are sizes that divide what lies between two, as many as a receiver's buffer holds beside those of others.
func between(low, high int) (sizes []int) {
	count := max(1, min(8, (96<<10)/high))
	step := max(1, (high-low)/(count+1))
	for s := low + step; s < high && len(sizes) < count; s += step {
		sizes = append(sizes, s)
	}
	return sizes
}

// lost are those of the sizes that do not come back.
func (p *prober) lost(sizes []int) ([]int, error) {
	missing := slices.Clone(sizes)
	for range tries {
		var err error
		if missing, err = p.once(missing); err != nil || len(missing) == 0 {
			return missing, err
		}
	}
	return missing, nil
}

// once sends packets of the sizes and a witness, and returns those that had not come back when it had.
func (p *prober) once(missing []int) ([]int, error) {
	p.round++
	for _, s := range missing {
		p.send(s)
	}
	heard, wait := false, time.Time{}
	for !heard || len(missing) > 0 {
		now := time.Now()
		switch {
		case now.After(p.end):
			return missing, p.silence()
		case heard && now.After(wait):
			return missing, nil
		case now.After(wait):
			p.send(witness)
			wait = now.Add(again)
		}
		size, round := p.receive(wait)
		switch {
		case size == witness && round == p.round && !heard:
			heard, wait = true, time.Now().Add(grace)
		default:
			missing = slices.DeleteFunc(missing, func(s int) bool { return s == size })
		}
	}
	return missing, nil
}

// silence is that no witness comes back.
func (p *prober) silence() error {
	if p.cause != nil {
		return p.cause
	}
	return fmt.Errorf("no answer to packets of %d bytes", witness)
}

// send sends a packet of a size with its headers.
func (p *prober) send(size int) {
	b := make([]byte, size-p.headers)
	copy(b, magic)
	binary.BigEndian.PutUint64(b[8:], p.id)
	binary.BigEndian.PutUint32(b[16:], p.round)
	binary.BigEndian.PutUint32(b[20:], uint32(len(b)))
	for range 2 { // what a router has said of a packet before fails the next call, which then sends nothing
		_, err := p.conn.Write(b)
		if err == nil {
			return
		}
		p.note(err)
	}
}

// receive is the next answer; size 0: none until then.
func (p *prober) receive(until time.Time) (size int, round uint32) {
	if until.After(p.end) {
		until = p.end
	}
	p.conn.SetReadDeadline(until)
	var b [head + 1]byte
	n, err := p.conn.Read(b[:])
	if err != nil {
		p.note(err) // the kernel forgets it when it has been read
		return 0, 0
	}
	if n != head || string(b[:8]) != magic || binary.BigEndian.Uint64(b[8:]) != p.id {
		return 0, 0
	}
	return int(binary.BigEndian.Uint32(b[20:])) + p.headers, binary.BigEndian.Uint32(b[16:])
}

func (p *prober) note(err error) {
	switch {
	case errors.Is(err, unix.EMSGSIZE):
		p.told = true
	case !errors.Is(err, os.ErrDeadlineExceeded):
		p.cause = err
	}
}

func headersOf(a netip.Addr) int {
	if a.Is4() {
		return 20 + 8
	}
	return 40 + 8
}

// control makes a socket of the interface whose packets are not cut, and as large as the interface takes whatever is known of the path.
func control(dev string) func(network, address string, c syscall.RawConn) error {
	return func(network, _ string, c syscall.RawConn) (err error) {
		set := func(fd int, name string, level, option, value int) {
			if e := unix.SetsockoptInt(fd, level, option, value); e != nil && err == nil {
				err = fmt.Errorf("setsockopt %s: %w", name, e)
			}
		}
		failed := c.Control(func(fd uintptr) {
			s := int(fd)
			if e := unix.SetsockoptString(s, unix.SOL_SOCKET, unix.SO_BINDTODEVICE, dev); e != nil && !errors.Is(e, unix.EPERM) { // as before Linux 5.7: the routes choose
				err = fmt.Errorf("setsockopt SO_BINDTODEVICE=%s: %w", dev, e)
			}
			if network == "udp6" {
				set(s, "IPV6_MTU_DISCOVER", unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER, unix.IPV6_PMTUDISC_PROBE)
				set(s, "IPV6_DONTFRAG", unix.IPPROTO_IPV6, unix.IPV6_DONTFRAG, 1)
			} else {
				set(s, "IP_MTU_DISCOVER", unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_PROBE)
			}
		})
		return errors.Join(failed, err)
	}
}
