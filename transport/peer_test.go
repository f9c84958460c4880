package transport

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"weft/internal/knob"
	"weft/internal/report"
	"weft/transport/device"
	"weft/transport/tcp"
	"weft/transport/verbs"
	"weft/transport/wire"
)

// childRole makes the test binary a peer process of its own; the value says
// which, childAddr on which address.
const (
	childRole    = "TRANSPORT_TEST_CHILD"
	childAddr    = "TRANSPORT_TEST_ADDR"
	childStreams = "TRANSPORT_TEST_STREAMS"
	childHCA     = "TRANSPORT_TEST_HCA" // its RDMA devices; none without
)

func TestMain(m *testing.M) {
	roles := map[string]func(*Context, *bufio.Reader) error{"listen": childListens, "send": childSends(exitMessage, 0), "send small": childSends(exitSmall, time.Second),
		"wait to receive": childWaitsToReceive, "wait to send": childWaitsToSend,
		"starve": childStarves, "sends on": childSendsOn, "receives on": childReceivesOn, "gives up": childGivesUp, "receives late": childReceivesLate}
	run := roles[os.Getenv(childRole)]
	if run == nil {
		os.Exit(m.Run())
	}
	if err := child(run); err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func child(run func(*Context, *bufio.Reader) error) error {
	settings := map[string]string{}
	for _, kv := range os.Environ() {
		k, v, _ := strings.Cut(kv, "=")
		if strings.HasPrefix(k, "WEFT_") {
			settings[k] = v
		}
	}
	dev := lo(1)
	if a := os.Getenv(childAddr); a != "" {
		streams, _ := strconv.Atoi(os.Getenv(childStreams))
		dev = netDevice(0, "eth0", max(streams, 1), strings.Split(a, ",")...)
	}
	interfaces, provider := []*tcp.Device{dev}, (*verbs.Provider)(nil)
	if hca := os.Getenv(childHCA); hca != "" {
		settings["NCCL_IB_HCA"], settings["NCCL_IBVERBS_LIB"] = hca, os.Getenv("NCCL_IBVERBS_LIB")
		var err error
		if provider, err = verbs.Open(verbs.Config{Knobs: knob.Parse(settings), Log: stderrLog{}}); err != nil {
			return err
		}
	}
	c, err := Open(Config{Knobs: knob.Parse(settings), Log: stderrLog{}, Code: testCode, Devices: device.Found(interfaces, provider), Interfaces: interfaces,
		Verbs: provider, Build: "child"})
	if err != nil {
		return err
	}
	return run(c.NewContext(ContextOptions{Table: aTable, TrafficClass: -1}), bufio.NewReader(os.Stdin))
}

// stderrLog prints what a child has to say.
type stderrLog struct{ report.Discard }

func (stderrLog) Warn(format string, a ...any) { fmt.Fprintf(os.Stderr, "child: "+format+"\n", a...) }

// childListens prints its handle, accepts, says so and leaves at a line on its
// input, without closing anything.
func childListens(x *Context, in *bufio.Reader) error {
	if _, err := childAccepts(x); err != nil {
		return err
	}
	in.ReadString('\n')
	return nil
}

func childAccepts(x *Context) (*Comm, error) {
	h := make([]byte, wire.HandleMax)
	l, err := x.Listen(0, h)
	if err != nil {
		return nil, err
	}
	fmt.Println(hex.EncodeToString(h))
	c, err := accept(l)
	if err != nil {
		return nil, err
	}
	fmt.Println("accepted")
	return c, nil
}

// childConnects reads a handle from its input.
func childConnects(x *Context, in *bufio.Reader) (*Comm, error) {
	line, err := in.ReadString('\n')
	if err != nil {
		return nil, err
	}
	h, err := hex.DecodeString(strings.TrimSpace(line))
	if err != nil {
		return nil, err
	}
	c, err := (&process{ctx: x}).connect(h)
	if err == nil {
		fmt.Println("connected")
	}
	return c, err
}

type peerProcess struct {
	*exec.Cmd
	handle []byte
	out    *bufio.Reader
	in     io.Writer
	said   *childLog
}

// childLog keeps what a child says on its standard error.
type childLog struct {
	mu   sync.Mutex
	text strings.Builder // protected by mu
}

func (l *childLog) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Write(b)
	return os.Stderr.Write(b)
}

// warned is how often the child has said something so far.
func (p *peerProcess) warned(text string) int {
	p.said.mu.Lock()
	defer p.said.mu.Unlock()
	return strings.Count(p.said.text.String(), text)
}

// spawn starts the test binary as a child, after the words of prefix.
func spawn(t *testing.T, role string, env []string, prefix ...string) *peerProcess {
	t.Helper()
	words := append(prefix, os.Args[0], "-test.run=^$")
	p := &peerProcess{Cmd: exec.Command(words[0], words[1:]...)}
	p.Env = append(append(os.Environ(), childRole+"="+role), env...)
	p.said = &childLog{}
	p.Stderr = p.said
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
	if role == "listen" || role == "wait to receive" || role == "receives on" || role == "receives late" {
		if p.handle, err = hex.DecodeString(p.line(t)); err != nil {
			t.Fatal(err)
		}
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
			p, a := spawn(t, "listen", nil), start(t, nil)
			s, err := a.connect(p.handle)
			if err != nil {
				t.Fatal(err)
			}
			p.line(t)
			out := send(s, register(t, s, buffer(t, waitsForCTS), waitsForCTS)) // no receive will ever match it
			out.step()
			end(p)
			drive(t, "a send whose peer is gone", out)
			if out.code != 100+int32(report.Peer) {
				t.Errorf("code %d", out.code)
			}
			if a.log.Count("WARN isend", "pid") != 1 {
				t.Errorf("log %q", a.log.Lines())
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestStoppedPeerIsNoFailure(t *testing.T) {
	p, a := spawn(t, "listen", nil), start(t, map[string]string{"WEFT_TIMEOUT": "1"})
	s, err := a.connect(p.handle)
	if err != nil {
		t.Fatal(err)
	}
	p.line(t)
	p.Process.Signal(syscall.SIGSTOP)
	out := send(s, register(t, s, buffer(t, waitsForCTS), waitsForCTS))
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
	if _, err := a.connect(h); report.CauseOf(err) != report.Network || !strings.Contains(err.Error(), "3 rounds") {
		t.Errorf("a listen that was closed: %v", err)
	}
	keep.Close()
	if _, err := a.connect(h); report.CauseOf(err) != report.Network || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("a process that is gone: %v", err)
	}
}
