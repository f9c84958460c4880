package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"weft/internal/simverbs"
)

// wires are what joins the hosts of a job, each with one device. Which of its directions is meant: tx is what the host of the
// rank sends, rx what it receives, both is both.
type wires interface {
	// env is what a process on the host of a rank needs.
	env(rank int) []string
	// wrap is the command in front of its program's, where %d stands for the rank.
	wrap() []string
	// cut loses everything of one host.
	cut(rank int) error
	// lose loses part of the packets.
	lose(rank int, dir string) error
	// halt stops a process as SIGSTOP does.
	halt(pid int) error
	// narrow leaves the device a small part of its bandwidth.
	narrow(rank int, dir string) error
	remove() error
}

const (
	tx   = "tx"
	rx   = "rx"
	both = "both"
)

var jobs atomic.Int32 // so far

// lay lays wires for so many hosts.
func lay(network string, hosts int) (wires, error) {
	n := int(jobs.Add(1))
	if network == "RDMA" {
		return layRDMA(n, hosts)
	}
	return layTCP(n, hosts)
}

// ethernet is a bridge to which a veth leads from eth0 of each host, a network namespace:
//
//	namespace w1r0, eth0 10.1.1.1/24 --- w1p0 ┐
//	namespace w1r1, eth0 10.1.1.2/24 --- w1p1 ┼ bridge w1
type ethernet struct{ number, hosts int }

func layTCP(n, hosts int) (wires, error) {
	e := &ethernet{n, hosts}
	err := do("ip link add w%d up type bridge", n)
	for i := 0; i < hosts && err == nil; i++ {
		ns, port := e.namespace(i), e.port(i)
		for _, cmd := range []string{
			"ip netns add " + ns,
			fmt.Sprintf("ip link add %s up type veth peer name eth0 netns %s", port, ns),
			fmt.Sprintf("ip link set %s master w%d", port, n),
			fmt.Sprintf("ip -n %s addr add 10.1.%d.%d/24 dev eth0", ns, n%256, i+1),
			fmt.Sprintf("ip -n %s link set eth0 up", ns),
			fmt.Sprintf("ip -n %s link set lo up", ns),
		} {
			if err == nil {
				err = do("%s", cmd)
			}
		}
	}
	for i := 0; i < hosts && err == nil; i++ {
		err = running(e.namespace(i))
	}
	return e, err
}

// running waits until eth0 of a namespace has its link.
func running(ns string) error {
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		out, err := exec.Command("ip", "-n", ns, "link", "show", "eth0", "up").Output()
		if err == nil && strings.Contains(string(out), "state UP") {
			return nil
		}
	}
	return fmt.Errorf("eth0 of %s has no link", ns)
}

func (e *ethernet) namespace(rank int) string { return fmt.Sprintf("w%dr%d", e.number, rank) }
func (e *ethernet) port(rank int) string      { return fmt.Sprintf("w%dp%d", e.number, rank) }

func (e *ethernet) env(int) []string {
	return []string{"NCCL_IB_DISABLE=1", "NCCL_SOCKET_IFNAME=eth0"}
}

func (e *ethernet) wrap() []string {
	return []string{"ip", "netns", "exec", fmt.Sprintf("w%dr%%d", e.number)}
}

func (e *ethernet) halt(pid int) error { return unix.Kill(pid, unix.SIGSTOP) }
func (e *ethernet) cut(rank int) error { return do("ip link set %s down", e.port(rank)) }

// lose drops one in twenty at the bridge: "ld rand; jlt share; ret drop; ret pass" in the bytecode of the classic BPF.
func (e *ethernet) lose(rank int, dir string) error {
	port, hook := e.port(rank), map[string]string{tx: "ingress", rx: "egress"}[dir]
	if err := do("tc qdisc add dev %s clsact", port); err != nil {
		return err
	}
	filter := fmt.Sprintf("4,32 0 0 4294963256,53 1 0 %d,6 0 0 2,6 0 0 4294967295", uint32(1)<<31/10)
	return doWords([]string{"tc", "filter", "add", "dev", port, hook, "bpf", "da", "bytecode", filter})
}

func (e *ethernet) narrow(rank int, dir string) error {
	where := "tc qdisc add dev " + e.port(rank)
	if dir == tx {
		where = fmt.Sprintf("tc -n %s qdisc add dev eth0", e.namespace(rank))
	}
	return do("%s root tbf rate 100mbit burst 64k latency 50ms", where)
}

func (e *ethernet) remove() error {
	err := do("ip link del w%d", e.number)
	for i := range e.hosts {
		if one := do("ip netns del %s", e.namespace(i)); err == nil {
			err = one
		}
	}
	return err
}

// simulated is a world of tools/simverbs with a node and a device for each host: simN of hostN.
type simulated struct {
	world simverbs.World
	dist  string
}

// rate is what its links carry, GB/s: so little that the machine is not what bounds them.
const rate = 0.5

func layRDMA(n, hosts int) (wires, error) {
	dist, err := simverbs.Dist()
	s := &simulated{world: simverbs.World{Name: fmt.Sprintf("campaign-%d-%d", os.Getpid(), n)}, dist: dist}
	for i := range hosts {
		s.world.Devices = append(s.world.Devices, simverbs.Device{
			Name: fmt.Sprintf("sim%d", i), Node: node(i), GIDs: []string{fmt.Sprintf("10.9.1.%d/24", i+1)}, Rate: rate, PCI: fmt.Sprintf("0000:81:00.%d", i),
		})
	}
	return s, err
}

func node(rank int) string { return fmt.Sprintf("host%d", rank) }

func (s *simulated) env(rank int) []string {
	env, err := s.world.Env(s.dist, node(rank))
	if err != nil {
		panic(err) // it has a name
	}
	return append(env, "NCCL_SOCKET_IFNAME=lo") // other jobs' interfaces come and go
}

func (s *simulated) wrap() []string { return nil }

// command says a line to any process of the world.
func (s *simulated) command(rank int, format, dir string) error {
	all, err := s.world.Processes()
	if err == nil && len(all) == 0 {
		err = errors.New("it has no process")
	}
	if err != nil {
		return fmt.Errorf("world %s: %w", s.world.Name, err)
	}
	return s.world.Control(all[0], fmt.Sprintf(format, fmt.Sprintf("%s/sim%d", node(rank), rank), dir))
}

func (s *simulated) cut(rank int) error { return s.command(rank, "blackhole %s %s", both) }

// lose loses what does not fit into small packets.
func (s *simulated) lose(rank int, dir string) error { return s.command(rank, "limit %s 512 %s", dir) }

func (s *simulated) narrow(rank int, dir string) error {
	return s.command(rank, "rate %s 0.02 %s", dir)
}

// halt keeps no other process from the world.
func (s *simulated) halt(pid int) error { return s.world.Stop(pid) }

func (s *simulated) remove() error { return s.world.Remove() }
