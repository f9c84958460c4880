package lab

import (
	"fmt"
	"strings"

	"weft/internal/lab/frame"
)

// Shape is how machines are joined.
type Shape string

const (
	Mesh Shape = "mesh" // a cable between every two
	Ring Shape = "ring" // 0-1, 1-2, ..., back to 0
	Line Shape = "line" // 0-1, 1-2, ...
)

// End is one end of a cable: an interface of a node, with its RDMA device.
type End struct {
	Node int
	NIC  string // eth0
	RDMA string // rxe0
	Addr string // 192.168.100.1
}

// Cable joins two ends; each cable is a subnet.
type Cable struct {
	Number int
	Ends   [2]End
}

// Prefix is an end's address with the length of its subnet's prefix.
func (e End) Prefix() string { return e.Addr + "/24" }

// far returns the end of c that is not at node, and the one that is; ok is false when the cable passes node by.
func (c Cable) far(node int) (near, far End, ok bool) {
	switch node {
	case c.Ends[0].Node:
		return c.Ends[0], c.Ends[1], true
	case c.Ends[1].Node:
		return c.Ends[1], c.Ends[0], true
	}
	return End{}, End{}, false
}

// pairs lists which nodes have a cable between them.
func (s Shape) pairs(n int) ([][2]int, error) {
	var out [][2]int
	switch s {
	case Mesh:
		for a := range n {
			for b := a + 1; b < n; b++ {
				out = append(out, [2]int{a, b})
			}
		}
	case Ring, Line:
		for a := range n - 1 {
			out = append(out, [2]int{a, a + 1})
		}
		if s == Ring && n > 2 {
			out = append(out, [2]int{n - 1, 0})
		}
	default:
		return nil, fmt.Errorf("topology %q: want %s, %s or %s", s, Mesh, Ring, Line)
	}
	return out, nil
}

// cables lays perPair cables between every two neighbours. Of one machine both ends are its own.
func cables(s Shape, nodes, perPair int) ([]Cable, error) {
	var out []Cable
	if nodes == 1 {
		for k := range perPair {
			out = append(out, Cable{k, [2]End{
				{0, fmt.Sprintf("a%d", k), fmt.Sprintf("rxa%d", k), address(k, 1)},
				{0, fmt.Sprintf("b%d", k), fmt.Sprintf("rxb%d", k), address(k, 2)},
			}})
		}
		return out, nil
	}
	pairs, err := s.pairs(nodes)
	if err != nil {
		return nil, err
	}
	used := make([]int, nodes)
	for _, p := range pairs {
		for range perPair {
			c := Cable{Number: len(out)}
			for i, node := range p {
				n := used[node]
				used[node]++
				c.Ends[i] = End{node, fmt.Sprintf("eth%d", n), fmt.Sprintf("rxe%d", n), address(c.Number, node+1)}
			}
			out = append(out, c)
		}
	}
	return out, nil
}

func address(cable, host int) string { return fmt.Sprintf("192.168.%d.%d", 100+cable, host) }

// mac is the address of a network card, the same in every run.
func mac(cable, end int) string { return fmt.Sprintf("52:54:00:77:%02x:%02x", cable, end) }

// setup is what a node is told about itself.
func (c *Config) setup(node int, all []Cable, mounts []frame.Mount) *frame.Setup {
	s := &frame.Setup{Name: nodeName(node), Mounts: mounts, Policy: c.Nodes == 1}
	for _, cable := range all {
		for i, e := range cable.Ends {
			if e.Node != node {
				continue
			}
			n := frame.NIC{Name: e.NIC, Prefix: e.Prefix(), MTU: c.MTU, RDMA: e.RDMA}
			if s.Policy {
				n.Peer, n.Table = cable.Ends[1-i].NIC, table(cable, i)
			} else {
				n.MAC = mac(cable.Number, i)
			}
			s.NICs = append(s.NICs, n)
		}
	}
	return s
}

// table is the routing table of one end, where both ends are in one machine.
func table(c Cable, end int) int { return 101 + 2*c.Number + end }

func nodeName(node int) string { return fmt.Sprintf("node%d", node) }

// environ is what a program finds in its environment, on top of the caller's.
func (c *Config) environ(node int, all []Cable) []string {
	env := []string{
		fmt.Sprintf("RANK=%d", node), fmt.Sprintf("NNODES=%d", c.Nodes), fmt.Sprintf("WORLD_SIZE=%d", c.Nodes),
		"LAB_NODE=" + nodeName(node),
	}
	if c.Nodes == 1 {
		var nics, rdma, addrs [2][]string
		for _, cable := range all {
			for i, e := range cable.Ends {
				nics[i], rdma[i], addrs[i] = append(nics[i], e.NIC), append(rdma[i], e.RDMA), append(addrs[i], e.Addr)
			}
		}
		for i, side := range []string{"A", "B"} {
			env = append(env, "LAB_NICS_"+side+"="+strings.Join(nics[i], " "), "LAB_RDMA_"+side+"="+strings.Join(rdma[i], " "),
				"LAB_ADDRS_"+side+"="+strings.Join(addrs[i], " "))
		}
		return env
	}
	list := func(key string, get func(near, far End) string, only func(peer int) bool) {
		var values []string
		for _, cable := range all {
			if near, far, ok := cable.far(node); ok && only(far.Node) {
				values = append(values, get(near, far))
			}
		}
		if len(values) > 0 {
			env = append(env, key+"="+strings.Join(values, " "))
		}
	}
	every := func(int) bool { return true }
	list("LAB_NICS", func(near, _ End) string { return near.NIC }, every)
	list("LAB_RDMA", func(near, _ End) string { return near.RDMA }, every)
	list("LAB_ADDRS", func(near, _ End) string { return near.Addr }, every)
	list("LAB_PEERS", func(_, far End) string { return fmt.Sprint(far.Node) }, every)
	for peer := range c.Nodes {
		is := func(n int) bool { return n == peer }
		list(fmt.Sprintf("LAB_NICS_%d", peer), func(near, _ End) string { return near.NIC }, is)
		list(fmt.Sprintf("LAB_RDMA_%d", peer), func(near, _ End) string { return near.RDMA }, is)
		list(fmt.Sprintf("LAB_ADDRS_%d", peer), func(near, _ End) string { return near.Addr }, is)
		list(fmt.Sprintf("LAB_PEER_%d", peer), func(_, far End) string { return far.Addr }, is)
	}
	if master := masterOf(node, c.Nodes, all); master != "" {
		env = append(env, "MASTER_ADDR="+master, "MASTER_PORT=29500")
	}
	return env
}

// masterOf is where a node reaches rank 0, when all can: on cables that are subnets of their own, each by another address. Rank 0
// itself has the first of them.
func masterOf(node, nodes int, all []Cable) string {
	at := make([]string, nodes)
	for _, c := range all {
		if _, far, ok := c.far(0); ok && at[far.Node] == "" {
			near, _, _ := c.far(0)
			at[far.Node] = near.Addr
			if at[0] == "" {
				at[0] = near.Addr
			}
		}
	}
	for _, a := range at {
		if a == "" {
			return ""
		}
	}
	return at[node]
}
