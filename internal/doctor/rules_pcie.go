package doctor

import (
	"fmt"
	"slices"
	"strings"

	"weft/internal/doctor/machine"
)

const pcieTopic = "PCIe"

// pcieRules: the link between a card and the machine.
var pcieRules = []Rule{
	{
		Code: "WEFT-050", Topic: pcieTopic, Severity: Slows,
		Title:       "a card's PCIe link has fewer lanes than card and slot have",
		Symptom:     "a card reaches half of its rate, in both directions",
		Consequence: "the link carries a part of what it should",
		Remedy:      "reseat the card, look at the riser, and power the machine off and on; lspci -vv shows LnkSta: ... (downgraded)",
		check: func(x *Exam) (all []Finding) {
			for _, f := range x.carriers() {
				if most := x.possibleWidth(f); f.Width > 0 && f.Width < most && !x.hasTwin(f) {
					all = append(all, seen(x.cardName(f), "%s: current_link_width %d, of %d", f.Address, f.Width, most))
				}
			}
			return all
		},
	},
	{
		Code: "WEFT-051", Topic: pcieTopic, Severity: Slows,
		Title:       "a card's PCIe link is slower than card and slot are",
		Symptom:     "a card reaches half of its rate, in both directions",
		Consequence: "the link carries a part of what it should",
		Remedy:      "set the slot's speed to the highest or Auto in the BIOS, and reseat the card",
		check: func(x *Exam) (all []Finding) {
			for _, f := range x.carriers() {
				if most := x.possibleSpeed(f); f.Speed > 0 && f.Speed < most {
					all = append(all, seen(x.cardName(f), "%s: current_link_speed %g GT/s, of %g", f.Address, f.Speed, most))
				}
			}
			return all
		},
	},
	{
		Code: "WEFT-052", Topic: pcieTopic, Severity: Slows,
		Title:       "a port is faster than the PCIe link behind it",
		Symptom:     "`ib_write_bw` ends well below the port's rate",
		Consequence: "the port cannot reach its rate",
		Remedy:      "move the card to a slot with as many and as fast lanes as it has",
		check: func(x *Exam) (all []Finding) {
			for _, p := range x.used() {
				f := p.Card.PCI
				if f == nil || f.Gbps() == 0 || f.Width < x.possibleWidth(f) && x.twin(p) == nil || f.Speed < x.possibleSpeed(f) {
					continue // not told, or told by the rules before
				}
				carried := f.Gbps()
				if t := x.twin(p); t != nil {
					carried += t.Card.PCI.Gbps()
				}
				if p.Gbps > carried {
					all = append(all, seen(p.String(), "%v has %g Gb/s, %s x%d at %g GT/s carries %.0f Gb/s", p, p.Gbps, f.Address, f.Width, f.Speed, carried))
				}
			}
			return all
		},
	},
	{
		Code: "WEFT-053", Topic: pcieTopic, Severity: Slows,
		Title:       "a PCIe link has errors",
		Symptom:     "`PCIe Bus Error` in dmesg, NCCL's async error 12 without a cause on the wire, lower bandwidth",
		Consequence: "the link sends again what was damaged; uncorrected errors end jobs",
		Remedy:      "reseat card and riser; dmesg | grep -i aer",
		check: func(x *Exam) (all []Finding) {
			for _, f := range x.carriers() {
				var said []string
				for _, kind := range []struct {
					file, total string
					most        int64
				}{{"aer_dev_fatal", "TOTAL_ERR_FATAL", 0}, {"aer_dev_nonfatal", "TOTAL_ERR_NONFATAL", 0}, {"aer_dev_correctable", "TOTAL_ERR_COR", 1000}} {
					if n := x.aer(f, kind.file, kind.total); n > kind.most {
						said = append(said, fmt.Sprintf("%s %d", kind.file, n))
					}
				}
				if said != nil {
					all = append(all, seen(x.cardName(f), "%s: %s", f.Address, strings.Join(said, ", ")))
				}
			}
			return all
		},
	},
	{
		Code: "WEFT-054", Topic: pcieTopic, Severity: Slows,
		Title:       "a GPU's PCIe link has fewer lanes than GPU and slot have",
		Symptom:     "one rank is slower than the others of its host",
		Consequence: "what travels between this GPU and cards is slower, and every collective waits for it",
		Remedy:      "reseat the GPU, and power the machine off and on; nvidia-smi -q -d PERFORMANCE,PCIE",
		check: func(x *Exam) (all []Finding) {
			for _, f := range x.GPUs() {
				if most := x.possibleWidth(f); f.Width > 0 && f.Width < most {
					all = append(all, seen(f.Address, "%s: current_link_width %d, of %d", f.Address, f.Width, most))
				}
			}
			return all
		},
	},
}

// carriers are the functions of cards that a job may use: physical ones, whose virtual functions tell nothing of the link.
func (x *Exam) carriers() (all []*machine.Function) {
	for _, f := range x.Functions() {
		if f.Network() && f.Physical == "" && (x.cardOf(f) != nil || x.fast(f)) {
			all = append(all, f)
		}
	}
	return all
}

// fast reports a card of the network of 10 Gb/s or more.
func (x *Exam) fast(f *machine.Function) bool {
	for _, n := range x.NICs() {
		if n.PCI == f && n.Mbps >= 10000 {
			return true
		}
	}
	return false
}

// hasTwin reports a function that shares its ports with another, and so has a part of the lanes by design.
func (x *Exam) hasTwin(f *machine.Function) bool {
	c := x.cardOf(f)
	return c != nil && slices.ContainsFunc(c.Ports, func(p *machine.Port) bool { return x.twin(p) != nil })
}

func (x *Exam) cardName(f *machine.Function) string {
	if c := x.cardOf(f); c != nil {
		return c.Name
	}
	return f.Address
}

// possibleWidth is what both ends of the link have.
func (x *Exam) possibleWidth(f *machine.Function) int64 {
	most := f.MaxWidth
	if b := f.Bridges(); len(b) > 0 {
		if n, ok := x.Int(b[len(b)-1], "max_link_width"); ok && n > 0 {
			most = min(most, n)
		}
	}
	return most
}

func (x *Exam) possibleSpeed(f *machine.Function) float64 {
	most := f.MaxSpeed
	if b := f.Bridges(); len(b) > 0 {
		if n := machine.Gigatransfers(x.Text(b[len(b)-1], "max_link_speed")); n > 0 {
			most = min(most, n)
		}
	}
	return most
}

// aer is a total of Advanced Error Reporting; 0: none, or not told.
func (x *Exam) aer(f *machine.Function, file, total string) (n int64) {
	for _, line := range x.Lines(f.Path, file) {
		if rest, ok := strings.CutPrefix(line, total+" "); ok {
			fmt.Sscan(rest, &n) // stays 0 where it is no number
		}
	}
	return n
}
