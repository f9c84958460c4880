package transport

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"weft/internal/knob"
	"weft/transport/rdma"
	"weft/transport/wire"
)

// childRole makes the test binary a peer process of its own.
const childRole = "TRANSPORT_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childRole) != "" {
		if err := child(); err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// child listens, prints its handle, accepts, says so and waits for a line on
// its input: "exit" leaves at once, without closing anything.
func child() error {
	c, err := Open(Config{Knobs: knob.Defaults(), Log: rdma.Discard{}, Code: testCode, Devices: defaultDevices(), Build: "child"})
	if err != nil {
		return err
	}
	x := c.NewContext(ContextOptions{ABI: 12, TrafficClass: -1})
	h := make([]byte, wire.HandleMax)
	l, err := x.Listen(0, h)
	if err != nil {
		return err
	}
	fmt.Println(hex.EncodeToString(h))
	if _, err := accept(l); err != nil {
		return err
	}
	fmt.Println("accepted")
	bufio.NewReader(os.Stdin).ReadString('\n')
	return nil
}

type peerProcess struct {
	*exec.Cmd
	handle []byte
	out    *bufio.Reader
	in     io.Writer
}

func spawn(t *testing.T) *peerProcess {
	t.Helper()
	p := &peerProcess{Cmd: exec.Command(os.Args[0], "-test.run=^$")}
	p.Env = append(os.Environ(), childRole+"=1")
	out, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if p.in, err = p.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Process.Kill(); p.Wait() })
	p.out = bufio.NewReader(out)
	if p.handle, err = hex.DecodeString(p.line(t)); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *peerProcess) line(t *testing.T) string {
	t.Helper()
	s, err := p.out.ReadString('\n')
	if err != nil || strings.HasPrefix(s, "error") {
		t.Fatal(s, err)
	}
	return strings.TrimSpace(s)
}

func TestPeerProcessGone(t *testing.T) {
	for name, end := range map[string]func(p *peerProcess){
		"killed":              func(p *peerProcess) { p.Process.Kill() },
		"exits without close": func(p *peerProcess) { io.WriteString(p.in, "exit\n") },
	} {
		t.Run(name, func(t *testing.T) {
			p, a := spawn(t), start(t, nil)
			s, err := a.connect(p.handle)
			if err != nil {
				t.Fatal(err)
			}
			p.line(t)
			out := send(s, register(t, s, buffer(t, 10), 10)) // no receive will ever match it
			out.step()
			end(p)
			drive(t, "a send whose peer is gone", out)
			if out.code != 100+int32(rdma.Peer) {
				t.Errorf("code %d", out.code)
			}
			if a.log.Count("WARN isend", "child"[:0], "pid") != 1 {
				t.Errorf("log %q", a.log.Lines())
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestStoppedPeerIsNoFailure(t *testing.T) {
	p, a := spawn(t), start(t, map[string]string{"WEFT_TIMEOUT": "1"})
	s, err := a.connect(p.handle)
	if err != nil {
		t.Fatal(err)
	}
	p.line(t)
	p.Process.Signal(syscall.SIGSTOP)
	out := send(s, register(t, s, buffer(t, 10), 10))
	for range 30 {
		out.step()
		time.Sleep(100 * time.Millisecond)
	}
	if out.done {
		t.Errorf("code %d, log %q", out.code, a.log.Lines())
	}
	p.Process.Signal(syscall.SIGCONT)
}

func TestConnectToNobody(t *testing.T) {
	a, b := start(t, map[string]string{"NCCL_SOCKET_RETRY_CNT": "2", "NCCL_SOCKET_RETRY_SLEEP_MSEC": "1"}), start(t, nil)
	l, h := b.listen(t, wire.HandleMax)
	keep, _ := b.listen(t, wire.HandleMax)
	l.Close()
	if _, err := a.connect(h); rdma.CauseOf(err) != rdma.Network || !strings.Contains(err.Error(), "3 rounds") {
		t.Errorf("a listen that was closed: %v", err)
	}
	keep.Close()
	if _, err := a.connect(h); rdma.CauseOf(err) != rdma.Network || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("a process that is gone: %v", err)
	}
}

func TestControlConnectionBreaks(t *testing.T) {
	one := func(p *process) *session {
		p.sessions.mu.Lock()
		defer p.sessions.mu.Unlock()
		for s := range p.sessions.in {
			return s
		}
		return nil
	}
	t.Run("network", func(t *testing.T) {
		a, b := start(t, nil), start(t, nil)
		s, r := pair(t, a, b)
		in := recv(r, register(t, r, buffer(t, 10), 10))
		in.step()
		one(b).end(rdma.Errorf(rdma.Network, "control connection", "reading: %w", syscall.ETIMEDOUT).With("the peer"))
		drive(t, "a receive without its network", in)
		if in.code != 100+int32(rdma.Network) || b.log.Count("WARN control connection with the peer", "timed out") != 1 {
			t.Errorf("code %d, log %q", in.code, b.log.Lines())
		}
		_ = s
	})
	t.Run("closed while the streams stand", func(t *testing.T) {
		a, b := start(t, nil), start(t, nil)
		s, r := pair(t, a, b)
		one(b).conn.CloseWrite() // what a peer does that breaks off only this connection
		out := send(s, register(t, s, buffer(t, 10), 10))
		drive(t, "a send without its control connection", out)
		if out.code != 100+int32(rdma.Peer) {
			t.Errorf("code %d, log %q", out.code, a.log.Lines())
		}
		_ = r
	})
	t.Run("a new connect opens another", func(t *testing.T) {
		a, b := start(t, nil), start(t, nil)
		pair(t, a, b)
		old := one(b)
		old.conn.Close()
		eventually(t, "both sides noticed", func() bool {
			a.sessions.mu.Lock()
			defer a.sessions.mu.Unlock()
			return len(a.sessions.out) == 0
		})
		s, r := pair(t, a, b)
		move(t, s, r, 100)
	})
	t.Run("unused, it says bye", func(t *testing.T) {
		a, b := start(t, nil), start(t, nil)
		s, r := pair(t, a, b)
		s.Close()
		r.Close()
		var mine *session
		a.sessions.mu.Lock()
		for _, o := range a.sessions.out {
			mine = o.s
		}
		a.sessions.mu.Unlock()
		mine.part() // what the timer does
		eventually(t, "both sides forgot it", func() bool { return one(b) == nil })
		for _, p := range []*process{a, b} {
			if n := p.log.Count("WARN"); n != 0 {
				t.Errorf("%q", p.log.Lines())
			}
		}
	})
}
