package stall_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weft/internal/trace/model"
	"weft/internal/trace/rectest"
	"weft/internal/trace/stall"
	"weft/transport/record/format"
)

const (
	second = uint64(time.Second)
	now    = 100 * second
	world  = 0xc0ffee
)

// ring is ranks that send around one, each with a link to the next. Before it stands still every link has carried one message.
type ring struct {
	t     *testing.T
	files []*rectest.File
	of    []*rectest.Thread
	life  map[uint64]stall.Life // by PID

	groups map[int]uint64 // receives so far, by rank
}

func newRing(t *testing.T, ranks int) *ring {
	t.Helper()
	g := &ring{t: t, life: map[uint64]stall.Life{}, groups: map[int]uint64{}}
	for r := range ranks {
		f := rectest.New(8, uint64(100+r), "node", 1, 1000, 5_000_000_000)
		th := f.Thread(uint32(r), "python")
		th.Put(format.Record{Kind: format.Comm, Comm: 1, Time: 1000, Rank: int32(r), A: world, B: f.Name("world") | uint64(ranks)<<32, C: 1 | 6<<32})
		th.Link(2000, 0x10, true, 2, uint64(0x1000+r), fmt.Sprint("mlx5_", r), "next", world)
		th.Link(2000, 0x20, false, 2, uint64(0x1000+(r+ranks-1)%ranks), fmt.Sprint("mlx5_", r), "previous", world)
		g.files, g.of = append(g.files, f), append(g.of, th)
		g.life[uint64(100+r)] = stall.Life{Now: now}
	}
	for r := range ranks {
		g.send(r, 90*second, true)
		g.receive((r+1)%ranks, 90*second, true)
	}
	return g
}

func (g *ring) send(r int, at uint64, ends bool) {
	m := g.of[r].Message(at, 0x10, true, 0, 4096, 7)
	if ends {
		g.of[r].MessageEnd(at+1000, m, 0, 4096, format.AheadEntry)
	}
}

func (g *ring) receive(r int, at uint64, ends bool) {
	g.groups[r]++
	group := g.groups[r]
	m := g.of[r].Message(at, 0x20, false, group, 4096, 7)
	if ends {
		g.of[r].MessageEnd(at+1000, m, group, 4096, 0)
	}
}

// coll enqueues a collective with the number.
func (g *ring) coll(r int, number uint64) {
	f := g.files[r]
	id := g.of[r].Start(format.Coll, 95*second+number, format.Record{Comm: 1, Rank: int32(r), A: number, More: [7]uint64{f.Name("AllReduce") | f.Name("ncclFloat32")<<32}})
	g.of[r].Stop(id, 95*second+number+10)
}

// step leaves a step of the proxy in a state.
func (g *ring) step(r int, state uint32) {
	op := g.of[r].Start(format.ProxyOp, 95*second, format.Record{Comm: 1, Rank: int32(r), A: uint64(100+r) | 1<<40, B: uint64(r+1) % uint64(len(g.of))})
	id := g.of[r].Start(format.ProxyStep, 95*second, format.Record{Comm: 1, Rank: int32(r), Parent: op})
	g.of[r].State(id, 95*second, state, 4096)
}

func (g *ring) report() *stall.Report {
	look := func(p *model.Process) stall.Life { return g.life[p.Header.PID] }
	return stall.New(model.New(rectest.Read(g.t, g.files...)), look, 2*time.Second)
}

// alive is when a process last showed that it runs.
func (g *ring) alive(r int, at uint64) {
	b := g.files[r].Bytes[format.OffAlive:]
	for i := range 8 {
		b[i] = byte(at >> (8 * i))
	}
}

func TestCauses(t *testing.T) {
	for _, c := range []struct {
		name  string
		ranks int
		do    func(g *ring)
		want  []string // kind: what, waiting, evidence that has these parts
		waits []string // from, to, why
	}{
		{"nothing", 3, func(g *ring) {}, nil, nil},
		{"what is under way for a moment", 3, func(g *ring) { g.send(0, now-second, false) }, nil, nil},
		{"a rank has not called", 4, func(g *ring) {
			for r := range 4 {
				g.coll(r, 41)
				if r != 2 {
					g.coll(r, 42)
				}
			}
			g.send(1, 95*second, false) // to rank 2, which has no receive
			g.receive(3, 95*second, false)
			g.receive(0, 95*second, false)
		}, []string{"process rank 2 (node:102) 3 [its last AllReduce of world is the one numbered 41, others have called that numbered 42]"},
			[]string{"1 2 no receive", "3 2 no send", "0 3 no send"}},
		{"a rank has never called", 2, func(g *ring) {
			g.coll(0, 0)
			g.receive(0, 95*second, false)
		}, []string{"process rank 1 (node:101) 1 [it has not called AllReduce of world, which others have called]"}, []string{"0 1 no send"}},
		{"a program that does something else", 2, func(g *ring) { g.receive(0, 95*second, false) },
			[]string{"process rank 1 (node:101) 1 [it has begun nothing that others have not: what keeps it is outside of the network (its program, its GPU)]"}, []string{"0 1 no send"}},
		{"a GPU that takes nothing", 2, func(g *ring) {
			g.send(0, 95*second, false)
			g.step(1, 12)
		}, []string{"process rank 1 (node:101) 1 [1 of its proxy's steps wait for its GPU to take what has come, for 5s]"}, []string{"0 1 no receive"}},
		{"a send that its receiver has not posted", 3, func(g *ring) {
			g.step(0, 20)
			g.receive(2, 95*second, false)
		}, []string{"process rank 1 (node:101) 2 [it has begun nothing"}, []string{"0 1 no receive", "2 1 no send"}},
		{"a GPU that gives nothing", 2, func(g *ring) {
			g.receive(0, 95*second, false)
			g.step(1, 8)
		}, []string{"process rank 1 (node:101) 1 [1 of its proxy's steps wait for its GPU to give what is to be sent, for 5s]"}, []string{"0 1 no send"}},
		{"a stopped rank, though it waits too", 3, func(g *ring) {
			for r := range 3 {
				g.receive(r, 95*second, false)
			}
			g.life[101] = stall.Life{Now: now, Stopped: true}
		}, []string{"process rank 1 (node:101) 2 [the process is stopped, by a signal or a debugger]"}, []string{"0 2 no send", "1 0 no send", "2 1 no send"}},
		{"a stopped rank, and one that computes", 3, func(g *ring) {
			g.receive(1, 95*second, false) // from rank 0, which waits for nobody
			g.receive(2, 95*second, false)
			g.life[101] = stall.Life{Now: now, Stopped: true}
		}, []string{"process rank 1 (node:101) 1 [the process is stopped"}, []string{"1 0 no send", "2 1 no send"}},
		{"files that are read while the job goes on", 2, func(g *ring) {
			g.receive(0, now-second/2, false)
			g.alive(1, now+60*second) // read a minute later
		}, nil, nil},
		{"a frozen rank", 2, func(g *ring) {
			g.receive(0, 95*second, false)
			g.alive(1, 95*second)
		}, []string{"process rank 1 (node:101) 1 [the kernel has it running, but it has shown no sign of life for 5s"}, []string{"0 1 no send"}},
		{"a file that does not tell of life", 2, func(g *ring) {
			g.receive(0, 95*second, false)
			g.alive(1, 0)
		}, []string{"process rank 1 (node:101) 1 [it has begun nothing"}, []string{"0 1 no send"}},
		{"a group of receives, of which one was sent", 2, func(g *ring) {
			g.groups[1]++
			g.of[1].Message(94*second, 0x20, false, g.groups[1], 4096, 7, 8)
			g.send(0, 95*second, true)
		}, []string{"process rank 0 (node:100) 1 [it has begun nothing"}, []string{"1 0 no send"}},
		{"a rank that ended", 3, func(g *ring) {
			for r := range 3 {
				g.receive(r, 95*second, false)
			}
			g.life[101] = stall.Life{Now: now, Gone: true}
			g.alive(1, 95*second)
		}, []string{"process rank 1 (node:101) 2 [the process has ended, 5s before the others' last sign of life]"}, []string{"0 2 no send", "1 0 no send", "2 1 no send"}},
		{"afterwards, all have ended at once", 2, func(g *ring) {
			g.receive(0, 95*second, false)
			for r := range 2 {
				g.alive(r, now)
				g.life[uint64(100+r)] = stall.Life{Now: now + 1000*second, Gone: true}
			}
		}, []string{"process rank 1 (node:101) 1 [it has begun nothing that others have not: what keeps it is outside of the network (its program, its GPU)]"}, []string{"0 1 no send"}},
		{"afterwards, a healthy job", 2, func(g *ring) {
			g.receive(0, now-second/2, false)
			for r := range 2 {
				g.alive(r, now)
				g.life[uint64(100+r)] = stall.Life{Now: now + 1000*second, Gone: true}
			}
		}, nil, nil},
		{"files of another machine", 2, func(g *ring) {
			g.receive(0, 95*second, false)
			g.alive(1, 90*second)
			for r := range 2 {
				g.life[uint64(100+r)] = stall.Life{}
			}
		}, []string{"process rank 1 (node:101) 1 [it has shown no sign of life for 10s: it is stopped or has ended, or its machine stands still]"}, []string{"0 1 no send"}},
		{"a path", 3, func(g *ring) {
			g.send(0, 95*second, false)
			g.receive(1, 94*second, false)
			g.receive(2, 95*second, false) // which waits for rank 1
		}, []string{"link the path from rank 0 (node:100) to rank 1 (node:101) (RDMA, mlx5_0 to mlx5_1) 2 [1 messages were sent, their receives are there, and they have not come or were not acknowledged, for 5s]"},
			[]string{"0 1 undelivered", "2 1 no send"}},
		{"sent and done, and not come", 2, func(g *ring) {
			g.send(0, 95*second, true)
			g.receive(1, 94*second, false)
		}, []string{"link the path from rank 0"}, []string{"0 1 undelivered"}},
		{"a circle", 2, func(g *ring) {
			g.send(0, 95*second, false)
			g.send(1, 95*second, false)
		}, []string{"circle everybody waits for another 2 [nobody is behind"}, []string{"0 1 no receive", "1 0 no receive"}},
		{"a circle of which one is behind", 2, func(g *ring) {
			g.coll(0, 0)
			g.coll(1, 0)
			g.coll(1, 1)
			g.send(0, 95*second, false)
			g.send(1, 95*second, false)
		}, []string{"circle everybody waits for another 2 [rank 0 (node:100): its last AllReduce"}, []string{"0 1 no receive", "1 0 no receive"}},
		{"a peer without a file", 3, func(g *ring) {
			g.receive(2, 95*second, false)
			g.files = append(g.files[:1], g.files[2])
		}, []string{"process previous (no file of it was read) 1 [it has no file here"}, []string{"2 previous no send"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newRing(t, c.ranks)
			for r := range c.ranks {
				g.alive(r, now)
			}
			c.do(g)
			r := g.report()
			if len(r.Causes) != len(c.want) {
				t.Fatalf("causes %+v\nwant %q\nwaits %+v\nnotes %q", r.Causes, c.want, r.Waits, r.Notes)
			}
			for i, w := range c.want {
				if got := fmt.Sprintf("%s %s %d %q", r.Causes[i].Kind, r.Causes[i].What, r.Causes[i].Waiting, r.Causes[i].Evidence); !strings.HasPrefix(strings.ReplaceAll(got, `"`, ""), w) {
					t.Errorf("cause %s\nwant %s", got, w)
				}
			}
			var waits []string
			for _, w := range r.Waits {
				waits = append(waits, fmt.Sprintf("%s %s %s", number(w.From), number(w.To), w.Why))
			}
			for _, w := range c.waits {
				if !strings.Contains(strings.Join(waits, "\n"), w) {
					t.Errorf("waits %q, want %q", waits, w)
				}
			}
			if len(waits) != len(c.waits) {
				t.Errorf("waits %q, want %q", waits, c.waits)
			}
			var b strings.Builder
			if err := r.Text(&b); err != nil || (len(waits) == 0) != strings.HasPrefix(b.String(), "nobody has waited") {
				t.Errorf("%v\n%s", err, b.String())
			}
			if _, err := json.Marshal(r); err != nil {
				t.Error(err)
			}
		})
	}
}

// number is the rank in a name, or its first word.
func number(name string) string {
	name = strings.TrimPrefix(name, "rank ")
	word, _, _ := strings.Cut(name, " ")
	return word
}

// TestHere asks a /proc that was made.
func TestHere(t *testing.T) {
	proc := t.TempDir()
	put := func(name, text string) {
		t.Helper()
		path := filepath.Join(proc, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	put("sys/kernel/random/boot_id", "01010101-0101-0101-0101-010101010101\n")
	put("self/ns/pid", "")
	pids := format.PIDs(filepath.Join(proc, "self/ns/pid"))
	stat := func(letter string) string { return "5 (a) b) " + letter + strings.Repeat(" 1", 18) + " 777 1 1\n" }
	put("5/stat", stat("S"))
	put("6/stat", stat("T"))
	put("7/stat", stat("Z"))
	put("9/stat", "garbage")
	var here, other [format.IDLen]byte
	for i := range here {
		here[i] = 1
	}
	for _, c := range []struct {
		name    string
		pid     uint64
		boot    [format.IDLen]byte
		pids    uint64
		started uint64
		known   bool
		want    stall.Life
	}{
		{"runs", 5, here, pids, 777, true, stall.Life{}},
		{"stopped", 6, here, pids, 777, true, stall.Life{Stopped: true}},
		{"a zombie", 7, here, pids, 777, true, stall.Life{Gone: true}},
		{"gone", 8, here, pids, 777, true, stall.Life{Gone: true}},
		{"another of its number", 5, here, pids, 776, true, stall.Life{Gone: true}},
		{"its start is not known", 5, here, pids, 0, true, stall.Life{}},
		{"in another container", 6, here, pids + 1, 777, false, stall.Life{}},
		{"of another machine", 6, other, pids, 777, false, stall.Life{}},
		{"no words", 9, here, pids, 777, true, stall.Life{}},
	} {
		p := &model.Process{}
		p.Header.PID, p.Header.Boot, p.Header.PIDs, p.Header.Started = c.pid, c.boot, c.pids, c.started
		got := stall.Here(proc)(p)
		if (got.Now != 0) != c.known {
			t.Errorf("%s: the time is %d", c.name, got.Now)
		}
		if got.Now = 0; got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}
