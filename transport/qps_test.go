package transport

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"testing"

	"weft/internal/simverbs"
	"weft/transport/lanes"
)

// What these tests know of queue pairs is what a line of the log says of a comm, and what the simulated devices have.

// States of a queue pair: IBV_QPS_RTS and IBV_QPS_ERR.
const (
	stateRTS = 3
	stateErr = 6
)

// qpsOn are this process's queue pairs on a simulated device.
func qpsOn(t testing.TB, device string) []simverbs.QP {
	t.Helper()
	w, err := simWorld()
	if err != nil {
		t.Fatal(err)
	}
	all, err := w.QPs(os.Getpid(), device)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// overRDMA is what carries a comm.
func overRDMA(c *Comm) *lanes.Carrier { return c.Carrier().(*lanes.Carrier) }

// portsOf are the devices that a comm's lanes run over here.
func portsOf(c *Comm) (names []string) {
	for _, p := range overRDMA(c).Routes() {
		if !slices.Contains(names, p.Local.Name) {
			names = append(names, p.Local.Name)
		}
	}
	return names
}

var pairOfQPs = regexp.MustCompile(`[ (](\d+)-(\d+)`)

// numbersOf are the queue pairs of a comm's lanes, here and there: the first eight.
func numbersOf(c *Comm) (all [][2]uint32) {
	line := overRDMA(c).Describe("")
	for _, m := range pairOfQPs.FindAllStringSubmatch(line[regexp.MustCompile(`\(QPs`).FindStringIndex(line)[0]:], -1) {
		var n [2]uint32
		fmt.Sscan(m[1], &n[0])
		fmt.Sscan(m[2], &n[1])
		all = append(all, n)
	}
	return all
}

// laneQP is a comm's lane, as its device has it.
func laneQP(t testing.TB, c *Comm, lane int) simverbs.QP {
	t.Helper()
	number := numbersOf(c)[lane][0]
	for _, device := range portsOf(c) {
		for _, q := range qpsOn(t, device) {
			if q.Number == number {
				return q
			}
		}
	}
	t.Fatalf("there is no QP %d", number)
	return simverbs.QP{}
}

// loopsOf are the queue pairs through which a comm flushes: each is connected to itself, and shares its completion queue with
// the lanes of its port.
func loopsOf(t testing.TB, c *Comm) (loops []uint32) {
	t.Helper()
	var numbers []uint32
	for _, n := range numbersOf(c) {
		numbers = append(numbers, n[0])
	}
	for _, device := range portsOf(c) {
		all := qpsOn(t, device)
		for _, q := range all {
			shared := func(lane simverbs.QP) bool { return slices.Contains(numbers, lane.Number) && lane.CQ == q.CQ }
			if q.Peer == q.Number && q.State == stateRTS && slices.ContainsFunc(all, shared) {
				loops = append(loops, q.Number)
			}
		}
	}
	return loops
}

// othersThan are the queue pairs on the one port of a comm that are not its own: where it is the only one, those of probes.
func othersThan(t testing.TB, c *Comm) []simverbs.QP {
	t.Helper()
	own := laneQP(t, c, 0).CQ
	return slices.DeleteFunc(qpsOn(t, portsOf(c)[0]), func(q simverbs.QP) bool { return q.CQ == own })
}
