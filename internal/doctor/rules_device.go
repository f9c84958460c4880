package doctor

import (
	"slices"
	"strings"

	"weft/internal/doctor/machine"
	"weft/internal/knob"
	"weft/transport/verbs/hca"
)

const deviceTopic = "RDMA devices"

// deviceRules: cards, and what a process needs to open them.
var deviceRules = []Rule{
	{
		Code: "WEFT-020", Topic: deviceTopic, Severity: Breaks,
		Title:       "a card's driver has no RDMA part loaded",
		Symptom:     "`ibv_devinfo` lists fewer cards than `lspci`",
		Consequence: "the card is a network device only: weft and NCCL use it over TCP",
		Remedy:      "modprobe mlx5_ib, and install linux-modules-extra-$(uname -r) where that is not found",
		check: func(x *Exam) (all []Finding) {
			for _, f := range x.Functions() {
				if f.Driver != "mlx5_core" || x.cardOf(f) != nil || x.Exists("/sys/module/mlx5_ib") && f.Physical != "" {
					continue
				}
				all = append(all, seen(f.Address, "%s is driven by mlx5_core, and no device in /sys/class/infiniband belongs to it", f.Address))
			}
			return all
		},
	},
	{
		Code: "WEFT-021", Topic: deviceTopic, Severity: Breaks,
		Title:       "a card is visible and its device file is not",
		Symptom:     "`NET/IB : No device found`, `ibv_open_device` fails, in a container",
		Consequence: "no process here can open the card: everything goes over TCP",
		Remedy:      "docker run --device=/dev/infiniband --cap-add=IPC_LOCK --network=host ...; in Kubernetes an RDMA device plugin, or privileged: true",
		check: func(x *Exam) (all []Finding) {
			for _, c := range x.Cards() {
				if c.Verbs != "" && !x.Exists("/dev/infiniband", c.Verbs) {
					all = append(all, seen(c.Name, "/sys/class/infiniband/%s is there, /dev/infiniband/%s is not", c.Name, c.Verbs))
				}
			}
			return all
		},
	},
	{
		Code: "WEFT-022", Topic: deviceTopic, Severity: Breaks,
		Title:       "a card has no device for verbs at all",
		Symptom:     "`Failed to get IB devices list`, an empty `ibv_devices`",
		Consequence: "libibverbs finds no card: everything goes over TCP",
		Remedy:      "modprobe ib_uverbs",
		check: func(x *Exam) (all []Finding) {
			for _, c := range x.Cards() {
				if c.Verbs == "" {
					all = append(all, seen(c.Name, "nothing in /sys/class/infiniband_verbs belongs to %s", c.Name))
				}
			}
			return all
		},
	},
	{
		Code: "WEFT-023", Topic: deviceTopic, Severity: Breaks,
		Title:       "NCCL_IB_HCA names no port that is there",
		Symptom:     "`NET/IB : No device found`; NCCL_IB_HCA was copied from another kind of machine",
		Consequence: "no RDMA device is used: everything goes over TCP",
		check: func(x *Exam) []Finding {
			s, filter := x.hca()
			if s.Value == "" || len(x.Ports()) == 0 || slices.ContainsFunc(x.Ports(), func(p *machine.Port) bool { return taken(filter, p) }) {
				return nil
			}
			return seen("NCCL_IB_HCA", "NCCL_IB_HCA=%s (%s); there is %s", s.Value, s.From, portNames(x.Ports())).with("NCCL_IB_HCA", "").mend("%s", s.Undo).one()
		},
	},
	{
		Code: "WEFT-024", Topic: deviceTopic, Severity: Slows,
		Title:       "NCCL_IB_HCA names a card, and takes others whose names begin so",
		Symptom:     "a storage card, or one too many, carries traffic of jobs",
		Consequence: "an entry is the beginning of a name unless the list begins with =: mlx5_1 takes mlx5_10, too",
		check: func(x *Exam) []Finding {
			s, filter := x.hca()
			if s.Value == "" || strings.HasPrefix(strings.TrimPrefix(s.Value, "^"), "=") {
				return nil
			}
			var more []string
			exact, _ := hca.Parse(exactly(s.Value))
			for _, p := range x.Ports() {
				if taken(filter, p) != taken(exact, p) && x.namesACard(s.Value, p.Card.Name) {
					more = append(more, p.String())
				}
			}
			if more == nil {
				return nil
			}
			return seen("NCCL_IB_HCA", "NCCL_IB_HCA=%s (%s) concerns %s, too", s.Value, s.From, strings.Join(more, ", ")).
				export("NCCL_IB_HCA", exactly(s.Value)).one()
		},
	},
	{
		Code: "WEFT-025", Topic: deviceTopic, Severity: Advice,
		Title:       "a card and virtual functions of it are both used",
		Symptom:     "more devices than cables; bandwidth per device is a part of what it says",
		Consequence: "NCCL takes each for a card of its own and shares traffic out among functions of one port",
		check: func(x *Exam) []Finding {
			var both []string
			for _, p := range x.used() {
				if p.Card.PCI == nil || p.Card.PCI.Physical == "" {
					continue
				}
				for _, q := range x.used() {
					if q.Card.PCI != nil && q.Card.PCI.Address == p.Card.PCI.Physical {
						both = append(both, p.Card.Name)
					}
				}
			}
			if both == nil {
				return nil
			}
			return seen(both[0], "%s: virtual functions of cards that are used themselves", strings.Join(both, ", ")).
				export("NCCL_IB_HCA", "^="+strings.Join(both, ",")).one()
		},
	},
	{
		Code: "WEFT-026", Topic: deviceTopic, Severity: Advice,
		Title:       "cards of one kind have different firmware",
		Symptom:     "one card behaves otherwise than its neighbours",
		Consequence: "features and faults differ from rail to rail",
		Remedy:      "mlxfwmanager --online -u, and reboot",
		check: func(x *Exam) (all []Finding) {
			first := map[string]*machine.Card{}
			for _, c := range x.Cards() {
				f := first[c.Board]
				switch {
				case c.Board == "" || c.Firmware == "":
				case f == nil:
					first[c.Board] = c
				case f.Firmware != c.Firmware:
					all = append(all, seen(c.Name, "%s and %s are both %s: firmware %s and %s", f.Name, c.Name, c.Board, f.Firmware, c.Firmware))
				}
			}
			return all
		},
	},
	{
		Code: "WEFT-027", Topic: deviceTopic, Severity: Breaks,
		Title:       "the cgroup forbids RDMA resources",
		Symptom:     "`ibv_create_qp` or `ibv_reg_mr` fails with EAGAIN though limits are high",
		Consequence: "QPs and memory cannot be had beyond the limit",
		Remedy:      "echo 'DEVICE hca_handle=max hca_object=max' > rdma.max of the cgroup, or leave the limit out of the pod",
		check: func(x *Exam) (all []Finding) {
			for _, line := range x.Lines("/sys/fs/cgroup/rdma.max") {
				name, limits, _ := strings.Cut(line, " ")
				for _, l := range strings.Fields(limits) {
					if _, most, _ := strings.Cut(l, "="); most != "max" {
						all = append(all, seen(name, "/sys/fs/cgroup/rdma.max: %s", line))
						break
					}
				}
			}
			return all
		},
	},
}

func (x *Exam) cardOf(f *machine.Function) *machine.Card {
	for _, c := range x.Cards() {
		if c.PCI == f {
			return c
		}
	}
	return nil
}

// hca is NCCL_IB_HCA and what it says.
func (x *Exam) hca() (set setting, filter hca.Filter) {
	s := x.set("NCCL_IB_HCA")
	filter, _ = hca.Parse(s.Value)
	return s, filter
}

type setting = machine.Setting

func taken(f hca.Filter, p *machine.Port) bool {
	_, _, ok := f.Takes(p.Card.Name, p.Number)
	return ok
}

// used are the ports that weft would take: active, and not left out.
func (x *Exam) used() (all []*machine.Port) {
	if x.knobs.Int(knob.IBDisable) != 0 {
		return nil
	}
	_, filter := x.hca()
	for _, p := range x.Ports() {
		if p.Active() && taken(filter, p) {
			all = append(all, p)
		}
	}
	return all
}

// exactly is the list with the mark that takes names as they are.
func exactly(list string) string {
	rest, exclude := strings.CutPrefix(list, "^")
	if exclude {
		return "^=" + rest
	}
	return "=" + rest
}

// namesACard reports an entry of the list that is the whole name of another card, and the beginning of this one's.
func (x *Exam) namesACard(list, name string) bool {
	for entry := range strings.SplitSeq(strings.TrimLeft(list, "^="), ",") {
		entry, _, _ = strings.Cut(entry, ":")
		if entry != name && entry != "" && strings.HasPrefix(name, entry) && slices.ContainsFunc(x.Cards(), func(c *machine.Card) bool { return c.Name == entry }) {
			return true
		}
	}
	return false
}

func portNames(ports []*machine.Port) string {
	var names []string
	for _, p := range ports {
		names = append(names, p.String())
	}
	return strings.Join(names, ", ")
}
