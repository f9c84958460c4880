package suite

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"weft/internal/lab"
	"weft/internal/lab/image"
	"weft/internal/link"
)

// program, library and what is simulated are built before; make test-lab names the folder.
func program(t *testing.T) string { return built(t, dist().Program("weft")) }

func library(t *testing.T) string { return built(t, dist().Library()) }

func simulated(t *testing.T, name string) string {
	return built(t, filepath.Join(string(dist()), "simverbs", name))
}

func dist() link.Dist { return link.Dist(os.Getenv("LAB_DIST")) }

func built(t *testing.T, path string) string {
	t.Helper()
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%v (make test-lab builds it)", err)
	}
	return path
}

// boot starts machines for a test and its subtests, and ends them with it.
func boot(t *testing.T, c lab.Config) *lab.Lab {
	t.Helper()
	if os.Getenv("LAB_DIST") == "" {
		t.Skip("boots virtual machines: make test-lab runs it")
	}
	c.Program, c.Note, c.Boot = program(t), t.Logf, 4*time.Minute
	l, err := tryBoot(t.Context(), c)
	var lack *image.Missing
	if errors.As(err, &lack) && os.Getenv("LAB_REQUIRED") == "" {
		t.Skipf("the lab cannot be built: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

// tryBoot looks for what the tests call, which all machines have from this one.
func tryBoot(ctx context.Context, c lab.Config) (*lab.Lab, error) {
	for _, p := range [][2]string{{"ib_write_bw", "perftest"}, {"ibv_devinfo", "ibverbs-utils"}, {"ss", "iproute2"}, {"ps", "procps"}} {
		if _, err := image.Tool(p[0], p[1], "the tests in the lab call it"); err != nil {
			return nil, err
		}
	}
	const provider = "/etc/libibverbs.d/rxe.driver"
	if _, err := os.Stat(provider); err != nil {
		return nil, &image.Missing{Program: provider, Package: "ibverbs-providers", For: "verbs finds Soft-RoCE through it"}
	}
	return lab.Boot(ctx, c)
}

// patient is for runs on a machine with much else to do: there the kernel of an emulated one, which answers for its card, may
// stand still for longer than a path may be silent by default.
const patient = "WEFT_TIMEOUT=40"

// outcome is how a program on a node ended.
type outcome struct {
	status int
	err    error
	out    bytes.Buffer // both streams
}

func (o *outcome) text() string {
	s := strings.TrimSpace(o.out.String())
	return s[max(0, len(s)-3000):]
}

// start runs a program on a node beside the test; the channel gives its outcome.
func start(t *testing.T, n *lab.Node, limit time.Duration, env []string, args ...string) <-chan *outcome {
	t.Helper()
	done := make(chan *outcome, 1)
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	t.Cleanup(cancel)
	go func() {
		o := &outcome{}
		o.status, o.err = n.Run(ctx, lab.Command{Args: args, Env: env, Stdout: &o.out, Stderr: &o.out})
		done <- o
	}()
	return done
}

// must runs a program that has to succeed.
func must(t *testing.T, n *lab.Node, limit time.Duration, args ...string) string {
	t.Helper()
	o := <-start(t, n, limit, nil, args...)
	if o.err != nil || o.status != 0 {
		t.Errorf("node %d: %s: status %d, %v\n%s", n.Number, strings.Join(args, " "), o.status, o.err, o.text())
	}
	return o.out.String()
}

// state is what tells a network that stands still from a program or a kernel that does.
var state = [][]string{{"ip", "-s", "link"}, {"ss", "-tino"}, {"rdma", "resource", "show", "qp"}, {"ps", "-eLo", "tid,stat,wchan:24,time,comm"}}

// logState logs how the nodes of a failed test are.
func logState(t *testing.T, nodes []*lab.Node) {
	for _, n := range nodes {
		for _, args := range state {
			out, err := n.Output(args...)
			t.Logf("node %d: %s: %v\n%s", n.Number, strings.Join(args, " "), err, out)
		}
	}
}

// noLeak compares a node's RDMA resources at the end of a test with those at its beginning.
func noLeak(t *testing.T, nodes ...*lab.Node) {
	t.Helper()
	for _, n := range nodes {
		before, err := n.Resources()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := n.AwaitNoLeak(before, 20*time.Second); err != nil {
				t.Error(err)
			}
		})
	}
	t.Cleanup(func() { // before the others
		if t.Failed() {
			logState(t, nodes)
		}
	})
}

// await asks again and again until a program on a node prints what is wanted.
func await(t *testing.T, n *lab.Node, want string, args ...string) {
	t.Helper()
	for until := time.Now().Add(30 * time.Second); ; time.Sleep(200 * time.Millisecond) {
		out, err := n.Output(args...)
		if err == nil && strings.Contains(out, want) {
			return
		}
		if time.Now().After(until) {
			t.Fatalf("node %d: %s: %q never came: %v\n%s", n.Number, strings.Join(args, " "), want, err, out)
		}
	}
}

// comms are the carriers of the connections in what weft run -v or weft conform -v printed, one per end.
func comms(text string) (carriers []string) {
	for line := range strings.Lines(text) {
		if m := commLine.FindStringSubmatch(line); m != nil {
			carriers = append(carriers, m[1])
		}
	}
	return carriers
}

// What weft logs of each end: "rxe0 -> rxe0 of node1 pid 7 (192.168.100.2:4791) over rxe0, GIDs ...".
var commLine = regexp.MustCompile(`NET/weft : \S+ (?:->|<-) .* over ([a-z0-9]+)[, ]`)

// overRDMA wants all connections on devices of a list, and at least as many ends as said.
func overRDMA(t *testing.T, o *outcome, ends int, devices ...string) {
	t.Helper()
	got := comms(o.out.String())
	if len(got) < ends {
		t.Errorf("%d ends of connections were logged, want at least %d\n%s", len(got), ends, o.text())
	}
	for _, c := range got {
		if !slices.Contains(devices, c) {
			t.Errorf("a connection is over %s, want %v\n%s", c, devices, o.text())
			return
		}
	}
}

// sent is how many packets a node's RDMA device has sent, which its kernel counts.
func sent(t *testing.T, n *lab.Node, device string) int64 {
	t.Helper()
	text, err := n.Output("cat", "/sys/class/infiniband/"+device+"/ports/1/hw_counters/sent_pkts")
	if err != nil {
		t.Fatal(err)
	}
	v, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// mtu is what one packet carries at most, under the interfaces' 4500.
const mtu = 4096

// carried wants a node's device to have sent at least so many bytes' packets since before.
func carried(t *testing.T, n *lab.Node, device string, before, bytes int64) {
	t.Helper()
	packets := sent(t, n, device) - before
	t.Logf("node %d, %s: %d packets for %d bytes", n.Number, device, packets, bytes)
	if packets < bytes/mtu {
		t.Errorf("node %d: %s sent %d packets, too few for %d bytes: they went another way", n.Number, device, packets, bytes)
	}
}
