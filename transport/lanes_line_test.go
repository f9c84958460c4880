package transport

import (
	"fmt"
	"strings"
	"testing"

	"weft/internal/hostcalls"
)

// One line for every connection says all that it was agreed to have.
func TestSimConnectionLine(t *testing.T) {
	env := map[string]string{"NCCL_IB_QPS_PER_CONNECTION": "10", "WEFT_LAZY": "off", "NCCL_IB_TC": "96", "NCCL_IB_SL": "2"}
	a, b, s, r := simPair(t, env)
	defer s.Close()
	defer r.Close()
	connected := func(device string) (numbers []string) { // as the device has them, in the order in which they were made
		for _, q := range qpsOn(t, device) {
			if q.State == stateRTS {
				numbers = append(numbers, fmt.Sprintf("%d-%d", q.Number, q.Peer))
			}
		}
		return numbers
	}
	for _, c := range []struct {
		p       *process
		way     string
		numbers []string
		gids    string
	}{
		{a, "INFO NET simA -> ", connected("simA"), "10.9.1.1 and 10.9.1.2"}, {b, "INFO NET simB <- ", connected("simB"), "10.9.1.2 and 10.9.1.1"},
	} {
		first, eighth := "(QPs "+c.numbers[0]+" ", c.numbers[7]+" and 2 more)"
		if c.p.log.Count(c.way, " over sim", "GIDs "+c.gids+", MTU 4096", "10 lanes", first, eighth, "SL 2, TC 96", "inline ", "ECE 0x4 of vendor 0x15b3") != 1 {
			t.Errorf("%q", c.p.log.Lines())
		}
	}
}

// A request that fails is explained to both hosts in a line each: status, vendor
// code, queue pair and its state, the port's, the peer, likely causes in order.
func TestSimCompletionIsDecoded(t *testing.T) {
	for status, cause := range map[string]string{
		"LOC_PROT_ERR (4)":       "memory that is not registered",
		"REM_ACCESS_ERR (10)":    "the peer deregistered the memory",
		"REM_OP_ERR (11)":        "the peer's NIC failed",
		"RETRY_EXC_ERR (12)":     "the peer's process or host is gone",
		"RNR_RETRY_EXC_ERR (13)": "the peer posted no receive in time",
	} {
		t.Run(status, func(t *testing.T) {
			a, b, s, r := probedPair(t, nil)
			in := recv(r, register(t, r, buffer(t, 4096), 4096))
			in.step()
			hostcalls.Test(in.req) // its CTS is out
			name, _, _ := strings.Cut(status, " ")
			command(t, "error simA 1 "+name)
			out := send(s, register(t, s, buffer(t, 4096), 4096))
			if until(t, "the send ends", out) == 0 || until(t, "the receive ends", in) == 0 {
				t.Errorf("codes %d and %d", out.code, in.code)
			}
			number := fmt.Sprintf("QP %d in state ERR, port 1 active", numbersOf(s)[0][0])
			if a.log.Count("WARN completion on simA with simB of ", "a data write ended "+status, "vendor code 0x", number, "likely, in this order: "+cause) != 1 ||
				a.log.Count("WARN") != 1 || b.log.Count("WARN", "simA: a data write ended "+name) != 1 {
				t.Errorf("%q %q", a.log.Lines(), b.log.Lines())
			}
			s.Close()
			r.Close()
		})
	}
}
