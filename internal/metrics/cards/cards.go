// Package cards reads what RDMA cards count of each port, from sysfs, in one vocabulary
// for the drivers that name the same things differently.
package cards

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Event is a counter of a port.
type Event struct {
	Device, Port string
	Event        string // of the vocabulary
	Counter      string // its name in sysfs
	Value        uint64
}

// vocabulary says what counters count: those of hw_counters, of mlx5, bnxt_re, ionic and
// rxe, and those of counters, which all have. Pauses of Ethernet ports (PFC) are the
// network interface's, and not in sysfs.
var vocabulary = map[string][]string{
	"timeout":          {"local_ack_timeout_err", "tx_rdma_ack_timeout", "to_retransmits"},
	"retransmission":   {"roce_adp_retrans", "completer_retry_err"},
	"retries_exceeded": {"req_transport_retries_exceeded", "max_retry_exceeded", "req_tx_retry_excd_err", "retry_exceeded_err"},
	"out_of_sequence":  {"out_of_sequence", "oos_drop_count", "res_oos_drop_count", "resp_tx_pkt_seq_err", "out_of_seq_request"},
	"sequence_nak":     {"packet_seq_err", "implied_nak_seq_err", "seq_err_naks_rcvd", "req_rx_pkt_seq_err", "req_rx_impl_nak_seq_err", "rcvd_seq_err"},
	"duplicate":        {"duplicate_request", "dup_req", "req_rx_dup_response"},
	"rnr_nak":          {"rnr_nak_retry_err", "rnr_naks_rcvd", "req_rx_rnr_retry_err", "rcvd_rnr_err"},
	"out_of_buffer":    {"out_of_buffer", "send_rnr_err"},
	"ecn_marked":       {"np_ecn_marked_roce_packets", "rx_ecn_marked_pkts", "rx_rdma_ecn_pkts"},
	"cnp_sent":         {"np_cnp_sent", "tx_cnp_pkts", "tx_rdma_cnp_pkts"},
	"cnp_received":     {"rp_cnp_handled", "rx_cnp_pkts", "rx_rdma_cnp_pkts"},
	"cnp_ignored":      {"rp_cnp_ignored"},
	"discard":          {"port_xmit_discards", "rx_roce_discards", "tx_roce_discards"},
	"error":            {"port_rcv_errors", "symbol_error", "rx_roce_errors", "tx_roce_errors", "rx_icrc_encapsulated"},
	"send_wait":        {"port_xmit_wait"},
	"link_down":        {"link_downed"},
	"link_recovery":    {"link_error_recovery"},
}

// eventOf is the vocabulary by counter.
var eventOf = func() map[string]string {
	of := map[string]string{}
	for event, counters := range vocabulary {
		for _, c := range counters {
			of[c] = event
		}
	}
	return of
}()

// Read reads the counters of all ports. sys is /sys. What cannot be read is not there:
// many cards lack many.
func Read(sys string) (all []Event) {
	ports, _ := filepath.Glob(filepath.Join(sys, "class/infiniband/*/ports/*"))
	for _, port := range ports {
		device := filepath.Base(filepath.Dir(filepath.Dir(port)))
		seen := map[string]bool{} // rxe has link_downed in both folders
		for _, folder := range []string{"hw_counters", "counters"} {
			entries, err := os.ReadDir(filepath.Join(port, folder))
			if err != nil {
				continue
			}
			for _, e := range entries {
				event := eventOf[e.Name()]
				if event == "" || seen[e.Name()] {
					continue
				}
				text, err := os.ReadFile(filepath.Join(port, folder, e.Name()))
				if err != nil {
					continue
				}
				value, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
				if err != nil {
					continue // "N/A (no PMA)"
				}
				seen[e.Name()] = true
				all = append(all, Event{device, filepath.Base(port), event, e.Name(), value})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b Event) int {
		return strings.Compare(a.Device+"\x00"+a.Port+"\x00"+a.Event, b.Device+"\x00"+b.Port+"\x00"+b.Event)
	})
	return all
}
