package doctor

import (
	"fmt"
	"slices"

	"weft/internal/doctor/machine"
	"weft/internal/knob"
	"weft/transport/verbs/gid"
	"weft/transport/verbs/hca"
)

// What others than rules ask of a machine that was looked at.

// Knobs are weft's, as the newest release of NCCL has them.
func (x *Exam) Knobs() *knob.Values { return x.knobs }

// Set is a variable as that release has it, and where it was set.
func (x *Exam) Set(name string) machine.Setting { return x.set(name) }

// Sets are all variables as that release has them.
func (x *Exam) Sets() map[string]string { return x.Settings(x.newest().r.Code) }

// Network says which library that release takes for its network, and how it asks for it.
func (x *Exam) Network() string {
	s := x.newest()
	return fmt.Sprintf("%v %s", s.r, told(s.asks, s.net, "NCCL's own networks"))
}

// Weft reports that it is weft.
func (x *Exam) Weft() bool { return x.newest().net.Weft() }

// Chosen is the entry of a port's table from which weft talks, and why; nil: weft does not use the port.
func (x *Exam) Chosen(p *machine.Port) (*machine.GID, string) { return x.chosen(p, x.gidWishes()) }

// Usable are the entries of a port's table that weft may take.
func (x *Exam) Usable(p *machine.Port) []machine.GID { return x.usable(p) }

// Sockets are the interfaces that weft takes for TCP, and why.
func (x *Exam) Sockets() ([]*machine.NIC, string) { return x.sockets() }

// GPUMemory says how cards reach the memory of GPUs, as far as files tell; not so: why they do not.
func (x *Exam) GPUMemory() (how string, so bool) {
	if client := x.peerClient(); client != "" {
		return client, true
	}
	if why, _ := x.noDMABUF(); why != "" {
		return why, false
	}
	return "DMA-BUF", true
}

// Problems are what of the knobs nobody reads or cannot be used; each line begins with a variable's name.
func (x *Exam) Problems() []string {
	_, gids := gid.RulesOf(x.knobs)
	_, ports := hca.Parse(x.set("NCCL_IB_HCA").Value)
	return slices.Concat(x.knobs.Problems(), gids, ports)
}

// Installed reports that the loader finds weft under its own name.
func (x *Exam) Installed() bool { return x.installed() != nil }
