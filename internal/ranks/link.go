package ranks

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"weft/internal/host"
)

// RingLink is what the data from one rank to the next went over, as the library's log has it.
type RingLink struct {
	From int    `json:"from"`
	To   int    `json:"to"`
	Kind string `json:"kind"` // RoCE, IB, TCP, or "" where the plugin does not say
	Text string `json:"text"`
	// Others: ports of other devices carried it, or TCP instead of RDMA.
	Others bool `json:"others,omitempty"`
}

func (l RingLink) String() string { return fmt.Sprintf("rank %d -> %d: %s", l.From, l.To, l.Text) }

// RequireRDMA is the Options.Require that makes a link over anything else fail.
const RequireRDMA = "rdma"

// env is what the rank's host gets beside this process's environment.
func (r *rank) env() []string {
	if r.o.Require == "" {
		return r.o.Env
	}
	return append(slices.Clone(r.o.Env), "WEFT_REQUIRE="+r.o.Require)
}

// links tells rank 0 what every rank's data went over. A plugin that does not know WEFT_REQUIRE is judged here.
func (r *rank) links() error {
	mine := LinkOf(r.h.Logs(), Sends)
	mine.From, mine.To = r.g.Rank(), (r.g.Rank()+1)%r.g.Size()
	mine.Text = mine.Text[:min(len(mine.Text), frameLimit/4/r.g.Size())] // all of them are one frame
	part, err := json.Marshal(mine)
	if err != nil {
		return err
	}
	all, err := r.g.Gather("links", part)
	if err != nil {
		return err
	}
	if r.g.Rank() == 0 {
		links := make([]RingLink, len(all))
		for i := range all {
			if err := json.Unmarshal(all[i], &links[i]); err != nil {
				return fmt.Errorf("rank %d's link: %w (do all ranks run the same weft?)", i, err)
			}
		}
		r.sink.Links(links)
	}
	if r.o.Require == RequireRDMA && mine.Kind != "RoCE" && mine.Kind != "IB" {
		return fmt.Errorf("RDMA is required, and the link to rank %d is: %s", mine.To, mine.Text)
	}
	return nil
}

// The lines of the library's log that tell of it.
var (
	deviceLine = regexp.MustCompile(`^NET/weft : device \d+ is (?:\S+, )?(\S+) port \d+: (RoCE|IB),`)
	noneLine   = regexp.MustCompile(`^NET/weft : verbs is not used(?:, .*?)?: (.*?); every device is served by TCP`)
	tcpLine    = regexp.MustCompile(`^NET/weft : \S+ -> .* goes over TCP, not by RDMA: (.*?)(?:; INFO lines tell of further ones)?$`)
	commLine   = regexp.MustCompile(`^NET/weft : (\S+) (->|<-) (\S+) of \S+ pid \d+ \(\S+\) over (.+)$`)
	growLine   = regexp.MustCompile(` has (\d+) lanes now`)
	portPart   = regexp.MustCompile(`(\S+) \(GIDs `)
	lanesPart  = regexp.MustCompile(`, (\d+) lanes?(?: and (\d+) later)? `)
	streamPart = regexp.MustCompile(`, (\d+) streams? `)
)

// The arrows by which a host's log tells connections apart.
const (
	Sends    = "->"
	Receives = "<-"
)

// LinkOf finds the last connection of a host that sends, or receives, in its log, which begins with what it said of its devices.
func LinkOf(log []host.LogLine, arrow string) RingLink {
	kinds := map[string]string{} // of cards
	var why, own, peer, over string
	var now int
	fell := false // from RDMA to TCP
	for _, l := range log {
		if m := deviceLine.FindStringSubmatch(l.Text); m != nil {
			kinds[m[1]] = m[2]
		} else if m := noneLine.FindStringSubmatch(l.Text); m != nil {
			why = m[1]
		} else if strings.HasPrefix(l.Text, "NET/weft : verbs is not used because of this error: ") {
			why = "libibverbs failed, as a warning says"
		} else if m := tcpLine.FindStringSubmatch(l.Text); m != nil {
			why, fell = m[1], true
		} else if m := commLine.FindStringSubmatch(l.Text); m != nil && m[2] == arrow {
			own, peer, over = m[1], m[3], m[4]
		} else if m := growLine.FindStringSubmatch(l.Text); m != nil {
			now, _ = strconv.Atoi(m[1]) // digits
		}
	}
	ways := own + " " + arrow + " " + peer
	if m := streamPart.FindStringSubmatch(over); m != nil && strings.HasPrefix(over, "tcp") {
		text := fmt.Sprintf("TCP %s, %s", ways, count(m[1], "stream"))
		if why != "" {
			text += ", because " + why
		}
		return RingLink{Kind: "TCP", Text: text, Others: fell}
	}
	lanes, ports := lanesPart.FindStringSubmatch(over), portPart.FindAllStringSubmatch(over, -1)
	kind := ""
	if len(ports) > 0 {
		card, _, _ := strings.Cut(ports[0][1], ":") // the name of a port has its number, or _dma, behind the card's
		kind = kinds[strings.TrimSuffix(card, "_dma")]
	}
	if lanes == nil || kind == "" {
		return RingLink{Text: "not known: the plugin's log does not say"}
	}
	var names []string
	for _, p := range ports {
		names = append(names, p[1])
	}
	by := strings.Join(names, "+")
	others := own != by && !strings.HasPrefix(own, by+"+")
	if others {
		ways += " by way of " + by
	}
	first, _ := strconv.Atoi(lanes[1]) // digits
	later, _ := strconv.Atoi(lanes[2]) // digits, or none
	of := ""
	if now = max(now, first); now < first+later {
		of = fmt.Sprintf(" of %d agreed", first+later)
	}
	return RingLink{Kind: kind, Text: fmt.Sprintf("%s %s, %s%s", kind, ways, count(strconv.Itoa(now), "lane"), of), Others: others}
}

func count(n, what string) string {
	if n == "1" {
		return n + " " + what
	}
	return n + " " + what + "s"
}
