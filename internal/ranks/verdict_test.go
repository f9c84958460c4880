package ranks

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"weft/internal/host"
)

func TestVerdict(t *testing.T) {
	at := func(rank int, kind Kind, text string, peers ...int) *Failure {
		return &Failure{Rank: rank, Host: fmt.Sprintf("node%d", rank), Kind: kind, Doing: "connect", Text: text, Peers: peers}
	}
	for _, c := range []struct {
		name      string
		all       []*Failure
		want, not []string
	}{
		{"a crash before what others saw of it", []*Failure{at(0, Link, "peer closed stream", 1), at(1, Died, "ended by SIGSEGV"), at(2, Follows, "killed by this program")},
			[]string{"look at rank 1 on node1", "SIGSEGV", "ranks 0, 2 ended with that"}, []string{"peer closed", "killed by this program"}},
		{"three hosts blame three peers", []*Failure{at(0, Link, "a", 1), at(1, Link, "b", 2), at(2, Link, "c", 0)},
			[]string{"what all machines share", "3 links between ranks 0, 1, 2", "NCCL_SOCKET_IFNAME"}, nil},
		{"one host at the end of every failed link", []*Failure{at(1, Link, "no route", 2), at(3, Stuck, "waits", 2), at(2, Link, "no route", 3), at(0, Follows, "x")},
			[]string{"look at rank 2 on node2", "all 2 links"}, nil},
		{"one cable", []*Failure{at(1, Link, "no route", 2), at(2, Follows, "x"), at(0, Follows, "x")},
			[]string{"between rank 1 on node1 and rank 2 on node2", "cable"}, nil},
		{"the same cause at every rank once", []*Failure{at(0, Own, "no file"), at(1, Own, "no file")},
			[]string{"look at rank 0 on node0 and rank 1 on node1"}, nil},
		{"who left, and what that rank's neighbour knows", []*Failure{at(2, Gone, "connection ended"), at(0, Own, "no memory")},
			[]string{"look at rank 2 on node2", "connection ended", "no memory"}, nil},
		{"a user", []*Failure{at(0, Link, "x", 1), at(1, Stopped, "stopped by SIGTERM")}, []string{"was stopped", "SIGTERM"}, []string{"look at"}},
		{"nobody knows", []*Failure{at(0, Stuck, "no end"), at(1, Stuck, "no end")}, []string{"did not go on"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := verdict(4, c.all)
			for _, w := range c.want {
				if !strings.Contains(text, w) {
					t.Errorf("want %q in:\n%s", w, text)
				}
			}
			for _, w := range c.not {
				if strings.Contains(text, w) {
					t.Errorf("%q in:\n%s", w, text)
				}
			}
			if strings.Count(text, "no file") > 1 {
				t.Errorf("said twice:\n%s", text)
			}
		})
	}
}

func TestFailureOf(t *testing.T) {
	for _, c := range []struct {
		err  error
		kind Kind
	}{
		{errors.New("x"), Own},
		{fmt.Errorf("a: %w", &AbortError{&Failure{Rank: 1}}), Follows},
		{fmt.Errorf("%w by SIGTERM", ErrStopped), Stopped},
		{&host.DeathError{Signal: syscall.SIGSEGV}, Died},
		{&host.DeathError{Signal: syscall.SIGKILL}, Died},
		{&host.DeathError{Signal: syscall.SIGKILL, Expected: true}, Follows},
		{&host.DeathError{Signal: syscall.SIGKILL, Deadline: "x did not answer"}, Stuck},
		{&host.ResultError{Call: "net.connect", Code: host.RemoteError}, Link},
		{&host.ResultError{Call: "net.connect", Code: host.SystemError}, Own},
		{&host.CommandError{Word: "deadline"}, Stuck},
		{&lateError{}, Stuck},
	} {
		if f := failureOf(0, c.err); f.Kind != c.kind {
			t.Errorf("%v: kind %d, want %d", c.err, f.Kind, c.kind)
		}
	}
}

// Every rank hears one verdict, formed from what all have told; of a rank that vanished, from what the others know.
func TestVerdictOfAllRanks(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	texts := make([]string, 4)
	var wg sync.WaitGroup
	for rank := range texts {
		o := JoinOptions{Addrs: []string{addr}, Rank: rank, Size: 4, Limit: time.Minute}
		if rank == 0 {
			o.Listener = l
		}
		wg.Go(func() {
			g, err := Join(context.Background(), o)
			if err != nil {
				t.Error(err)
				return
			}
			if rank == 2 { // as a process that is killed
				g.(*joined).Close()
				return
			}
			_, err = g.Gather("x", nil)
			if err == nil {
				t.Errorf("rank %d goes on without rank 2", rank)
			}
			g.Abort(err)
			texts[rank], _ = g.Verdict()
		})
	}
	wg.Wait()
	if !strings.Contains(texts[0], "look at rank 2 on 127.0.0.1") || !strings.Contains(texts[0], "ranks 0, 1, 3 ended with that") {
		t.Errorf("rank 0: %s", texts[0])
	}
	if texts[1] != texts[0] || texts[3] != texts[0] {
		t.Errorf("not the same verdict: %q", texts)
	}
}
