package prom

import (
	"github.com/prometheus/client_golang/prometheus"
)

// Labels of a process, of a link between two devices, and of a card's port.
var (
	ofProcess = []string{"host", "pid", "rank"}
	ofLink    = append(append([]string{}, ofProcess...), "direction", "network", "device", "peer", "peer_pid", "peer_device")
	ofLane    = append(append([]string{}, ofLink...), "lane")
	ofPort    = []string{"host", "device", "port", "event", "counter"}
)

func named(name, help string, labels []string) *prometheus.Desc {
	return prometheus.NewDesc("weft_"+name, help, labels, nil)
}

var (
	messages    = named("messages_total", "Messages that were sent or received whole.", ofLink)
	moved       = named("bytes_total", "Bytes of those messages.", ofLink)
	failures    = named("message_failures_total", "Messages that began and failed.", ofLink)
	seconds     = named("message_seconds", "Time of a message: of a send until its last byte is handed over (TCP) or acknowledged (RDMA), of a receive from when it is posted until it is complete.", ofLink)
	waits       = named("send_waits_total", "Sends that found no receive posted.", ofLink)
	waited      = named("send_wait_seconds_total", "Time in which sends found no receive posted.", ofLink)
	laneBytes   = named("lane_bytes_total", "Bytes that each QP of connections carried, by its place among them.", ofLane)
	open        = named("connections", "Connections that are open.", ofLink)
	closed      = named("connections_closed_total", "Connections that were closed.", ofLink)
	broken      = named("connections_broken_total", "Of the closed connections, those that had failed before.", ofLink)
	lanes       = named("lanes", "Queue pairs or sockets of the open connections.", ofLink)
	inFlight    = named("messages_in_flight", "Messages that have begun and are not complete.", ofLink)
	waiting     = named("sends_waiting", "Open connections whose send waits for a receive.", ofLink)
	alive       = named("process_alive", "1: the process runs. 0: it is stopped, has ended, or has shown no sign of life.", ofProcess)
	lastAlive   = named("process_last_alive_timestamp_seconds", "When the process last showed that it runs, by its clock.", ofProcess)
	info        = named("process_info", "What the process is.", append(append([]string{}, ofProcess...), "ranks", "build", "state"))
	uncounted   = named("connections_uncounted_total", "Connections of which nothing is counted: the file had no place left.", ofProcess)
	stalls      = named("stalls_total", "Waits for other processes that the process has told of in its log (WEFT_PROFILE=stall).", ofProcess)
	stalled     = named("stalls_waiting", "Of those, the ones that last.", ofProcess)
	unreadables = named("file_problems", "Files, or parts of files, that could not be read.", nil)
	portEvents  = named("port_events_total", "What the counters of a card's port say, in one vocabulary; counter is their name in sysfs.", ofPort)
)

// all are what a collector may export.
var all = []*prometheus.Desc{messages, moved, failures, seconds, waits, waited, laneBytes, open, closed, broken, lanes, inFlight, waiting, alive, lastAlive, info, uncounted, stalls, stalled, unreadables, portEvents}

// bounds are the ends of the buckets of message_seconds, in ns: powers of 4, from a
// microsecond to a minute, each where one of the file's begins.
var bounds = func() (all []uint64) {
	for ns := uint64(1 << 10); ns <= 1<<36; ns <<= 2 {
		all = append(all, ns)
	}
	return all
}()
