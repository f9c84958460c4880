package ranks

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// listen takes the other ranks in.
func (g *joined) listen(ctx context.Context) error {
	l, err := g.listener(ctx)
	if err != nil {
		return fmt.Errorf("rank 0 listens for the others: %w (%s names an address of this machine and a free port)", err, g.o.By)
	}
	defer l.Close()
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	came := make(chan struct{}, g.o.Size)
	judge := func(rank, size int) string {
		g.mu.Lock()
		defer g.mu.Unlock()
		switch {
		case size != g.o.Size:
			return fmt.Sprintf("rank %d says --nranks %d, rank 0 says %d", rank, size, g.o.Size)
		case rank < 1 || rank >= size:
			return fmt.Sprintf("there is no rank %d of %d to come", rank, size)
		case g.peers[rank] != nil:
			return fmt.Sprintf("rank %d is here already: two ranks have the same number", rank)
		}
		return ""
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				w := newWire(c)
				rank, err := w.receive(g.o.Token, judge)
				if err != nil {
					g.o.Note("%s: %v", c.RemoteAddr(), err)
					c.Close()
					return
				}
				g.mu.Lock()
				taken := g.peers[rank] != nil
				if !taken {
					g.peers[rank] = w
				}
				g.mu.Unlock()
				if taken {
					c.Close()
					return
				}
				came <- struct{}{}
			}()
		}
	}()
	missing := func() string {
		g.mu.Lock()
		defer g.mu.Unlock()
		return list(g.o.Size, func(r int) bool { return r > 0 && g.peers[r] == nil })
	}
	up := time.NewTimer(g.o.Limit)
	defer up.Stop()
	say := time.NewTicker(g.o.Every)
	defer say.Stop()
	g.o.Note("waiting for %s at %s", missing(), l.Addr())
	for n := 1; n < g.o.Size; {
		select {
		case <-came:
			n++
		case <-say.C:
			g.o.Note("still waiting for %s at %s", missing(), l.Addr())
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-up.C:
			return fmt.Errorf("rank 0 waited %v at %s: no word from %s", g.o.Limit, l.Addr(), missing())
		}
	}
	for r := 1; r < g.o.Size; r++ {
		go g.pump(r, g.peers[r])
	}
	return nil
}

// list names the ranks that are so: "rank 2", or "ranks 2, 5".
func list(size int, so func(rank int) bool) string {
	var out []string
	for r := range size {
		if so(r) {
			out = append(out, fmt.Sprint(r))
		}
	}
	if len(out) == 1 {
		return "rank " + out[0]
	}
	return "ranks " + strings.Join(out, ", ")
}

// listener listens at every address of this machine, since the others may reach it by different ones; on
// loopback alone if that is what they are told.
func (g *joined) listener(ctx context.Context) (net.Listener, error) {
	if g.o.Listener != nil {
		return g.o.Listener, nil
	}
	host, port, err := net.SplitHostPort(g.o.Addrs[0])
	if err != nil {
		return nil, err
	}
	var known, loopback, ours int
	var foreign netip.Addr
	for _, at := range g.o.Addrs {
		h, _, _ := net.SplitHostPort(at)
		for _, ip := range resolve(ctx, h) {
			known++
			switch {
			case ip.IsLoopback():
				loopback++
			case ip.IsUnspecified() || own(ip):
				ours++
			default:
				foreign = ip
			}
		}
	}
	if known > 0 && loopback+ours == 0 {
		g.o.Note("rank 0 runs here, but %s is no address of this machine (it has %s): the other ranks come through only if something forwards it", foreign, ownList())
	}
	if known == 0 || loopback < known {
		host = ""
	}
	return net.Listen("tcp", net.JoinHostPort(host, port))
}

func resolve(ctx context.Context, host string) []netip.Addr {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	ips, _ := net.DefaultResolver.LookupNetIP(ctx, "ip", host) // without an answer nothing is known about it
	for i := range ips {
		ips[i] = ips[i].Unmap()
	}
	return ips
}

func ownAddrs() (out []netip.Addr) {
	all, _ := net.InterfaceAddrs() // without them nothing is known about it
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok {
			if ip, ok := netip.AddrFromSlice(n.IP); ok {
				out = append(out, ip.Unmap())
			}
		}
	}
	return out
}

func own(ip netip.Addr) bool {
	return ip.IsLoopback() || slices.Contains(ownAddrs(), ip.WithZone(""))
}

func ownList() string {
	var out []string
	for _, ip := range ownAddrs() {
		if ip.IsGlobalUnicast() {
			out = append(out, ip.String())
		}
	}
	if len(out) == 0 {
		return "none but loopback"
	}
	return strings.Join(out, ", ")
}

// dial finds rank 0, which may start later.
func (g *joined) dial(ctx context.Context) error {
	until := time.Now().Add(g.o.Limit)
	at := strings.Join(g.o.Addrs, ", ")
	var last error
	var said time.Time
	for n := 0; time.Now().Before(until) && ctx.Err() == nil; n++ {
		addr := g.o.Addrs[n%len(g.o.Addrs)]
		err := g.greetAt(ctx, addr)
		var r refusal
		if err == nil || errors.As(err, &r) && len(g.o.Addrs) == 1 {
			return err
		}
		last = err
		if n%len(g.o.Addrs) == len(g.o.Addrs)-1 && time.Since(said) >= g.o.Every {
			g.o.Note("waiting for rank 0 at %s (%v)%s", at, err, g.hint(ctx, addr))
			said = time.Now()
		}
		select {
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return fmt.Errorf("rank %d waited %v for rank 0 at %s: %w%s", g.o.Rank, g.o.Limit, at, last, g.hint(ctx, g.o.Addrs[0]))
}

func (g *joined) greetAt(ctx context.Context, addr string) error {
	d := net.Dialer{Timeout: 3 * time.Second, Control: smallSegments}
	c, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	w := newWire(c)
	if err := w.greet(g.o.Token, g.o.Rank, g.o.Size); err != nil {
		c.Close()
		return err
	}
	g.peers[0] = w
	go g.pump(0, w)
	return nil
}

// smallSegments keeps what ranks say, both ways, in packets that IPv6 lets pass anywhere: a path that drops large ones is what the ranks
// are to tell of. A kernel that does not take it leaves them as large as they are.
func smallSegments(_, _ string, c syscall.RawConn) error {
	const segment = 1280 - 40 - 20 // without the headers of IPv6 and TCP
	return c.Control(func(fd uintptr) { _ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_MAXSEG, segment) })
}

// hint says what an address looks like from here when nobody answers at it.
func (g *joined) hint(ctx context.Context, addr string) string {
	host, _, _ := net.SplitHostPort(addr)
	for _, ip := range resolve(ctx, host) {
		if own(ip) && !ip.IsLoopback() {
			return fmt.Sprintf("; %s is an address of this machine, where rank 0 does not listen (yet): %s names an address of rank 0's machine", ip, g.o.By)
		}
	}
	return ""
}
