package lab

import (
	"bytes"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestShapes(t *testing.T) {
	for _, c := range []struct {
		shape Shape
		nodes int
		want  [][2]int
	}{
		{Mesh, 2, [][2]int{{0, 1}}},
		{Mesh, 4, [][2]int{{0, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}, {2, 3}}},
		{Ring, 2, [][2]int{{0, 1}}},
		{Ring, 4, [][2]int{{0, 1}, {1, 2}, {2, 3}, {3, 0}}},
		{Line, 3, [][2]int{{0, 1}, {1, 2}}},
	} {
		got, err := c.shape.pairs(c.nodes)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s of %d: %s", c.shape, c.nodes, diff)
		}
	}
	if _, err := Shape("star").pairs(3); err == nil {
		t.Error("an unknown topology was taken")
	}
}

func TestEnvironmentNamesNeighbours(t *testing.T) {
	for _, c := range []struct {
		name  string
		c     Config
		node  int
		has   []string
		hasNo string
	}{
		{"the middle of a line", Config{Nodes: 3, Shape: Line}, 1,
			[]string{"RANK=1", "WORLD_SIZE=3", "LAB_PEERS=0 2", "LAB_PEER_0=192.168.100.1", "LAB_PEER_2=192.168.101.3", "LAB_NICS_2=eth1", "LAB_RDMA=rxe0 rxe1"}, "MASTER_ADDR="},
		{"a mesh reaches rank 0", Config{Nodes: 3}, 2, []string{"MASTER_ADDR=192.168.101.1", "LAB_ADDRS=192.168.101.3 192.168.102.3"}, "LAB_PEER_2="},
		{"rank 0 is told its first address", Config{Nodes: 3}, 0, []string{"MASTER_ADDR=192.168.100.1"}, "LAB_NICS_A="},
		{"two cables", Config{Nodes: 2, Cables: 2}, 0, []string{"LAB_PEERS=1 1", "LAB_PEER_1=192.168.100.2 192.168.101.2"}, "LAB_NICS_A="},
		{"one machine", Config{}, 0, []string{"RANK=0", "NNODES=1", "LAB_RDMA_A=rxa0 rxa1 rxa2", "LAB_ADDRS_B=192.168.100.2 192.168.101.2 192.168.102.2"}, "LAB_PEERS="},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := c.c.Check(); err != nil {
				t.Fatal(err)
			}
			all, err := cables(c.c.Shape, c.c.Nodes, c.c.Cables)
			if err != nil {
				t.Fatal(err)
			}
			env := c.c.environ(c.node, all)
			for _, want := range c.has {
				if !slices.Contains(env, want) {
					t.Errorf("no %s in %v", want, env)
				}
			}
			for _, v := range env {
				if strings.HasPrefix(v, c.hasNo) {
					t.Errorf("%s should not be there", v)
				}
			}
		})
	}
}

func TestCheckRefuses(t *testing.T) {
	for _, c := range []Config{{Nodes: 5}, {Nodes: -1}, {Shape: "star"}, {MTU: 100}, {MemMB: 1}, {Cables: 9}, {Between: 1500}, {Nodes: 2, Between: 100}, {Share: []string{"/nonexistent/folder"}}} {
		if err := c.Check(); err == nil {
			t.Errorf("%+v was taken", c)
		}
	}
}

func TestPrefixed(t *testing.T) {
	var out bytes.Buffer
	var mu sync.Mutex
	p := NewPrefixed(&out, "[1] ", &mu)
	for _, s := range []string{"a", "b\nc\n", "", "\n", "d"} {
		p.Write([]byte(s))
	}
	p.Flush()
	if got, want := out.String(), "[1] ab\n[1] c\n[1] \n[1] d\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestLeaked(t *testing.T) {
	before, err := parseResources(`[{"ifindex":0,"ifname":"rxe0","pd":1,"cq":1,"qp":1,"mr":0},{"ifindex":1,"ifname":"rxe1","pd":1,"cq":1,"qp":1,"mr":0}]`)
	if err != nil {
		t.Fatal(err)
	}
	after, err := parseResources(`[{"ifindex":0,"ifname":"rxe0","pd":1,"cq":1,"qp":3,"mr":1},{"ifindex":1,"ifname":"rxe1","pd":1,"cq":1,"qp":1,"mr":0}]`)
	if err != nil {
		t.Fatal(err)
	}
	if got := before.Leaked(after); got != "2 qp, 1 mr" {
		t.Errorf("leaked %q", got)
	}
	if got := before.Leaked(before); got != "" {
		t.Errorf("leaked %q", got)
	}
	if _, err := parseResources("no JSON"); err == nil {
		t.Error("nonsense was taken")
	}
}
