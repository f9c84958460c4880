package faults

import (
	"fmt"
	"strings"
	"testing"

	"weft/internal/host"
)

// TestKnobs gives every kind of malformed setting: init works with the default and
// one WARN names variable, value and what is allowed.
func TestKnobs(t *testing.T) {
	for name, values := range map[string][]string{
		"NCCL_SOCKET_NTHREADS":       {"many", "-5", "99999999999999999999", "4x"},
		"NCCL_NSOCKS_PERTHREAD":      {"x", "-3"},
		"NCCL_SOCKET_FAMILY":         {"AF_UNIX", "4"},
		"NCCL_SOCKET_TOS_CONFIG":     {"256", "-2", "EF"},
		"NCCL_SOCKET_SNDBUF":         {"big", "-7"},
		"WEFT_TIMEOUT":               {"0", "never", "-1", "1e9"},
		"WEFT_CONNECT_TIMEOUT":       {"", "soon"},
		"WEFT_PORT_RANGE":            {"70000-70001", "2000-1000", "a-b"},
		"WEFT_TIMOUT":                {"3"},
		"NCCL_SOCKET_RETRY_CNT":      {"x"},
		"NCCL_SOCKET_MIN_TASKSIZE":   {"0x"},
		"NCCL_SOCKET_RETRY_SLEEP_MS": nil, // unknown to NCCL too: nothing to say
	} {
		for _, v := range values {
			t.Run(name+"="+v, func(t *testing.T) {
				t.Parallel()
				p := start(t, "process", newest, name+"="+v)
				warned := 0
				for _, l := range p.h.Logs() {
					if l.Level == 2 && strings.Contains(l.Text, name) {
						warned++
					}
				}
				if v == "" { // as if it were not set
					return
				}
				if warned != 1 {
					t.Errorf("%d warnings about it: %v", warned, p.h.Logs())
				}
				join(p, p, 4096).move(traffic{size: 100, count: 1, window: 1})
			})
		}
	}
}

// TestNofile runs into the limit of descriptors, soft and hard, at each point of a
// process's first connection: every call works, or says which limit it is, and the
// process lives on.
func TestNofile(t *testing.T) {
	worked, refused := 0, 0
	for extra := range 24 {
		p := bare(t, fmt.Sprintf("process with %d more", extra), "WEFT_TIMEOUT=1", "WEFT_CONNECT_TIMEOUT=3")
		p.load(newest)
		limit := uint64(fds(t, p) + extra)
		must(t, p.h.Rlimit("nofile", limit, limit), "setrlimit")
		err := p.n.Init()
		if err == nil {
			err = attempt(p)
		}
		switch c := host.Code(err); {
		case err == nil:
			worked++
		// Its peer, too, is this process: either end may be the one that has none left,
		// and when the accepting one is, the connecting one's comm carries the error.
		case c == host.SystemError, c == host.RemoteError, host.TimedOut(err):
			refused++
			if !named(p, err) {
				t.Errorf("%d more descriptors: nothing names the limit and the remedy: %v", extra, err)
			}
		default:
			t.Errorf("%d more descriptors: %v; log %v", extra, err, p.h.Logs())
		}
		if _, err := p.h.Stat(); err != nil && p.h.Err() != nil {
			t.Errorf("%d more descriptors: %v", extra, err)
		}
		p.h.Kill()
	}
	if worked == 0 || refused == 0 {
		t.Errorf("%d limits were enough, %d were not: the range tests nothing", worked, refused)
	}
}

// named tells whether the error, or a warning, says what to do about the limit.
func named(p *peer, err error) bool {
	said := err.Error()
	for _, l := range p.h.Logs() {
		said += l.Text
	}
	return strings.Contains(said, "ulimit -n")
}

// attempt connects the process with itself and closes again.
func attempt(p *peer) error {
	handle, lc, err := p.n.Listen(0)
	if err != nil {
		return err
	}
	defer p.n.CloseListen(lc)
	send, recv, err := p.n.ConnectAccept(0, handle, lc, patience/6)
	if err != nil {
		return err
	}
	if err := p.n.CloseSend(send); err != nil {
		return err
	}
	return p.n.CloseRecv(recv)
}

// TestNofileKept requires that the host program's own limit is what it was after init.
func TestNofileKept(t *testing.T) {
	p := bare(t, "process")
	_, err := p.h.Call("main", "proc.rlimit", host.Args{"which", "nofile", "soft", 500, "hard", 5000})
	must(t, err, "setrlimit")
	p.load(newest)
	must(t, p.n.Init(), "init")
	r, err := p.h.Call("main", "proc.rlimit", host.Args{"which", "nofile"})
	must(t, err, "getrlimit")
	if s, h := r.Int("soft"), r.Int("hard"); s != 500 || h != 5000 {
		t.Errorf("after init the limit is %d of %d, it was 500 of 5000", s, h)
	}
}

// TestTwoCopies has two NCCLs in one process share the library: each with tables of
// its own, initialised and finalized apart, both at work at once.
func TestTwoCopies(t *testing.T) {
	for _, pair := range [][2]int{{newest, newest}, {newest, 6}, {4, 11}, {first, 10}} {
		t.Run(fmt.Sprint(pair), func(t *testing.T) {
			p := start(t, "process", pair[0])
			far, far2 := start(t, "first's peer", pair[0]), start(t, "second's peer", pair[1])
			lib, err := p.h.Load(p.lib.Path) // the second copy's own dlopen
			must(t, err, "second dlopen")
			if lib.Handle != p.lib.Handle {
				t.Error("a second dlopen gave another library")
			}
			n, err := lib.BindNetAs(pair[1], "second")
			must(t, err, "second table")
			must(t, n.Init("commId", 77), "second init")
			q := &peer{t: t, h: p.h, lib: lib, n: n.On("copy2")}
			first, second := join(p, far, 1<<20), join(q, far2, 1<<20)
			f := traffic{size: 50_000, count: 20, window: 8}
			r, s := first.receiving(f), first.sending(f)
			_, err = s.Wait()
			must(t, err, "first copy")
			arrived(t, r)
			second.move(f)
			must(t, p.n.Finalize(), "finalize of the first copy")
			must(t, p.lib.Unload(), "dlclose of the first copy")
			second.move(f)
			join(far2, q, 1<<20).move(f)
		})
	}
}
