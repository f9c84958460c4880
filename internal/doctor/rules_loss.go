package doctor

import (
	"fmt"
	"slices"
	"strings"

	"weft/internal/doctor/machine"
)

const lossTopic = "Loss and errors"

// What counters may show since the driver was loaded before somebody should look.
const (
	manySequence = 1000
	manyReplies  = 10000
	manyDamaged  = 100
	manyRefused  = 1000
)

// lossRules: what RoCE loses, and what should prevent it.
var lossRules = []Rule{
	{
		Code: "WEFT-130", Topic: lossTopic, Severity: Slows,
		Title:       "packets of RDMA are lost or come out of order",
		Symptom:     "bandwidth breaks down when several hosts send to one; status 12 under load",
		Consequence: "lost packets are sent again, mostly with all that followed; without PFC or ECN on host and switches this grows with load",
		Remedy:      "mlnx_qos -i NETDEV --pfc 0,0,0,1,0,0,0,0 --trust=dscp, NCCL_IB_TC=106 (DSCP 26), and PFC and ECN for that priority on the switches",
		check: func(x *Exam) (all []Finding) {
			for _, p := range x.used() {
				said := x.counted(p.Path+"/hw_counters", manySequence, "out_of_sequence", "packet_seq_err", "local_ack_timeout_err", "roce_adp_retrans", "rx_icrc_encapsulated")
				if said == nil {
					continue
				}
				if c, ok := x.Counter(p.Path, "hw_counters/np_ecn_marked_roce_packets"); ok && !p.IB {
					said = append(said, fmt.Sprintf("marked by ECN: %d", c.Total))
				}
				all = append(all, seen(p.String(), "%s", strings.Join(said, ", ")))
			}
			return all
		},
	},
	{
		Code: "WEFT-131", Topic: lossTopic, Severity: Slows,
		Title:       "receivers are not ready when data arrives",
		Symptom:     "`RNR retry exceeded` (status 13), latency peaks",
		Consequence: "the sender waits and sends again: a receiver's process was late, or its memory was being paged",
		Remedy:      "look for what keeps the process from running: CPU limits of the container, swap, numa_balancing (WEFT-092, WEFT-093)",
		check: func(x *Exam) (all []Finding) {
			for _, p := range x.used() {
				if said := x.counted(p.Path+"/hw_counters", manyReplies, "rnr_nak_retry_err", "out_of_buffer"); said != nil {
					all = append(all, seen(p.String(), "%s", strings.Join(said, ", ")))
				}
			}
			return all
		},
	},
	{
		Code: "WEFT-132", Topic: lossTopic, Severity: Slows,
		Title:       "a RoCE port does not react to congestion",
		Symptom:     "many-to-one traffic pauses the whole fabric, or loses packets",
		Consequence: "marks of ECN are neither answered nor obeyed (DCQCN is off): senders do not slow down",
		check: func(x *Exam) (all []Finding) {
			for _, p := range x.roce() {
				dev := p.NetDev(x.Machine)
				for _, part := range []string{"roce_np", "roce_rp"} {
					folder := "/sys/class/net/" + dev + "/ecn/" + part + "/enable"
					if off, ok := x.allOff(folder); ok && off {
						all = append(all, seen(p.String(), "%s: 0 for every priority", folder).
							mend("for i in 0 1 2 3 4 5 6 7; do echo 1 > /sys/class/net/%s/ecn/roce_np/enable/$i; echo 1 > /sys/class/net/%[1]s/ecn/roce_rp/enable/$i; done", dev))
						break
					}
				}
			}
			return all
		},
	},
	{
		Code: "WEFT-133", Topic: lossTopic, Severity: Slows,
		Title:       "a port is told to pause, or has to wait for credits, most of the time",
		Symptom:     "bandwidth far below the line with no errors at all",
		Consequence: "somebody behind the switch does not take what it gets: a slow receiver holds the senders up",
		Remedy:      "find the receiver: the port of the switch with the most pause frames sent; ethtool -S NETDEV | grep pause",
		check: func(x *Exam) (all []Finding) {
			for _, p := range x.used() {
				wait, ok := x.Counter(p.Path, "counters/port_xmit_wait")
				if ok && wait.Looks == 2 && wait.Rising > manyWaits {
					all = append(all, seen(p.String(), "%s/counters/%v", p.Path, wait))
				}
			}
			return all
		},
	},
}

// manyWaits is what a second of a port that mostly waits adds to port_xmit_wait.
const manyWaits = 1 << 20

// errorRules: what links damage.
var errorRules = []Rule{
	{
		Code: "WEFT-135", Topic: lossTopic, Severity: Slows,
		Title:       "a link damages what it carries",
		Symptom:     "one rail is slower than the others; status 12 now and then",
		Consequence: "damaged packets are sent again, and a link with many goes down",
		Remedy:      "clean or change cable and transceiver: mlxlink -d DEVICE -m -c shows BER and light",
		check: func(x *Exam) (all []Finding) {
			for _, p := range x.used() {
				if said := x.counted(p.Path+"/counters", manyDamaged, "symbol_error", "link_error_recovery", "local_link_integrity_errors", "port_rcv_errors", "port_rcv_remote_physical_errors"); said != nil {
					all = append(all, seen(p.String(), "%s", strings.Join(said, ", ")))
				}
			}
			return all
		},
	},
	{
		Code: "WEFT-136", Topic: lossTopic, Severity: Slows,
		Title:       "a port throws away what it should send",
		Symptom:     "status 12 towards hosts that are slow or gone",
		Consequence: "the link was down, or the other end took nothing for too long",
		Remedy:      "look at the switch port, and at the fabric's routes (ibdiagnet)",
		check: func(x *Exam) (all []Finding) {
			for _, p := range x.used() {
				if said := x.counted(p.Path+"/counters", manyRefused, "port_xmit_discards", "port_xmit_constraint_errors", "port_rcv_constraint_errors", "port_rcv_switch_relay_errors", "excessive_buffer_overrun_errors", "VL15_dropped"); said != nil {
					all = append(all, seen(p.String(), "%s", strings.Join(said, ", ")))
				}
			}
			return all
		},
	},
	{
		Code: "WEFT-137", Topic: lossTopic, Severity: Slows,
		Title:       "an interface receives damaged frames, or has no place for them",
		Symptom:     "TCP is slow in one direction; retransmissions",
		Consequence: "TCP sends again what was lost, and slows down",
		check: func(x *Exam) (all []Finding) {
			for _, n := range x.carrying() {
				if said := x.counted(n.Path+"/statistics", manyDamaged, "rx_crc_errors", "rx_frame_errors", "tx_carrier_errors", "collisions"); said != nil {
					all = append(all, seen(n.Name, "%s", strings.Join(said, ", ")).mend("change the cable of %s; ethtool %[1]s shows speed and duplex", n.Name))
				}
				if said := x.counted(n.Path+"/statistics", manyRefused, "rx_fifo_errors", "rx_missed_errors", "rx_over_errors"); said != nil {
					all = append(all, seen(n.Name, "%s", strings.Join(said, ", ")).mend("ethtool -G %s rx 8192", n.Name))
				}
			}
			return all
		},
	},
	{
		Code: "WEFT-138", Topic: lossTopic, Severity: Slows,
		Title:       "the kernel drops packets that it has no time for",
		Symptom:     "TCP is slow and retransmits with no errors on the link",
		Consequence: "a processor's queue of received packets was full",
		Remedy:      "sysctl -w net.core.netdev_max_backlog=250000 net.core.netdev_budget=600, and spread interrupts: ethtool -L NETDEV combined N",
		check: func(x *Exam) []Finding {
			dropped := int64(0)
			for _, line := range x.Lines("/proc/net/softnet_stat") {
				var processed, drops int64
				if n, _ := fmt.Sscanf(line, "%x %x", &processed, &drops); n == 2 {
					dropped += drops
				}
			}
			if dropped <= manyRefused {
				return nil
			}
			return seen("", "/proc/net/softnet_stat: %d dropped", dropped).one()
		},
	},
}

// counted says which counters of a folder are above most, or grew between two looks.
func (x *Exam) counted(folder string, most int64, names ...string) (said []string) {
	for _, name := range names {
		if c, ok := x.Counter(folder, name); ok && (c.Total > most || c.Rising > 0) {
			said = append(said, c.String())
		}
	}
	return said
}

// carrying are the interfaces that TCP or RoCE uses.
func (x *Exam) carrying() []*machine.NIC {
	all, _ := x.sockets()
	for _, p := range x.roce() {
		if n := x.NIC(p.NetDev(x.Machine)); n != nil && !slices.Contains(all, n) {
			all = append(all, n)
		}
	}
	return all
}

// allOff reports a folder of switches that are all 0.
func (x *Exam) allOff(folder string) (off, known bool) {
	names := x.List(folder)
	for _, name := range names {
		if n, ok := x.Int(folder, name); !ok || n != 0 {
			return false, ok
		}
	}
	return true, len(names) > 0
}
