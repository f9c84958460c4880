package main

import (
	"regexp"
	"strconv"
	"strings"
)

// What weft accuses somebody of.
const (
	stands      = "stopped"     // it does not reply, though its machine does
	unreachable = "unreachable" // neither does its machine
	isLate      = "late"        // it waits for nobody
	isBusy      = "busy"        // it is behind with its work
	path        = "path"        // what is sent from one to the other does not come
	unplugged   = "unplugged"   // its own device has no link
)

// charge is what a line says of whom, by the number of its process; of a path, of both its ends.
type charge struct {
	what    string
	pid, to int
	either  bool // of a path: in which direction is not said
}

var (
	waitLine = regexp.MustCompile(`stall: (send to|receive from) \S+:(\d+) \(\S+ (?:->|<-) \S+\) has waited [^:]*: (.*)$`)
	endings  = []struct {
		what string
		text *regexp.Regexp
	}{
		{stands, regexp.MustCompile(`(\S+:(\d+)|that process) does not reply, though its machine does`)},
		{unreachable, regexp.MustCompile(`(\S+:(\d+)|that process) does not reply, and neither does its machine`)},
		{isLate, regexp.MustCompile(`(\S+:(\d+)|that process) runs and waits for nobody`)},
		{isBusy, regexp.MustCompile(`(\S+:(\d+)|that process) runs, and other connections of it move`)},
	}
	farPath = regexp.MustCompile(`the (?:path|connection) from \S+:(\d+) to \S+:(\d+) (?:does not deliver|has failed)`)
	losing  = regexp.MustCompile(`loss: .*: packet loss on the path from \S+:(\d+) to \S+:(\d+)`)
	ended   = regexp.MustCompile(`: (?:liveness on|comm with) .*pid (\d+) .*(?:no progress|does not answer|lost|ended)`)
	packet  = regexp.MustCompile(`packets from port 10\.9\.1\.(\d+) to 10\.9\.1\.(\d+) are lost`)
)

// accused reads a line; nil: it names nobody, or nobody in the end. speaker is the number of its process.
func accused(text string, speaker int) *charge {
	if m := losing.FindStringSubmatch(text); m != nil {
		return &charge{what: path, pid: number(m[1]), to: number(m[2])}
	}
	if m := ended.FindStringSubmatch(text); m != nil {
		return &charge{what: path, pid: speaker, to: number(m[1]), either: true}
	}
	m := waitLine.FindStringSubmatch(text)
	if m == nil {
		return nil
	}
	peer := number(m[2])
	rest := m[3]
	if w := farPath.FindStringSubmatch(rest); w != nil {
		return &charge{what: path, pid: number(w[1]), to: number(w[2])}
	}
	if strings.Contains(rest, "nothing passes here") {
		return &charge{what: unplugged, pid: speaker}
	}
	if strings.Contains(rest, "check the path between the two devices") {
		if m[1] == "send to" {
			return &charge{what: path, pid: speaker, to: peer}
		}
		return &charge{what: path, pid: peer, to: speaker}
	}
	for _, e := range endings {
		if w := e.text.FindStringSubmatch(rest); w != nil {
			who := peer
			if w[2] != "" {
				who = number(w[2])
			}
			return &charge{what: e.what, pid: who}
		}
	}
	return nil
}

func number(text string) int {
	n, _ := strconv.Atoi(text) // the pattern has digits only
	return n
}
