// Package info says what a machine has for NCCL with weft: RDMA devices with their ports and GIDs, interfaces, GPUs, and which of
// them are used for which, and why. It reads what doctor reads and decides nothing: choices are the library's own, or NCCL's.
package info

import (
	"fmt"
	"slices"

	"weft/internal/doctor"
	"weft/internal/version"
)

// Schema is the version of the report's form: a field may come, none goes or changes its meaning without a new number.
const Schema = "weft.info/1"

// Report is what is known of one machine.
type Report struct {
	Schema  string   `json:"schema" doc:"weft.info/1; a new number where a field goes or changes its meaning"`
	Host    string   `json:"host" doc:"the machine's own name"`
	Weft    string   `json:"weft" doc:"version of the weft that looked"`
	Network string   `json:"network" doc:"which library the newest NCCL takes for its network, and how it asks for it"`
	Devices []Device `json:"devices" doc:"RDMA devices, by name"`
	TCP     TCP      `json:"tcp" doc:"network devices"`
	GPUs    []GPU    `json:"gpus" doc:"GPUs, by PCI address"`
	Fused   []string `json:"fused,omitempty" doc:"devices that NCCL from 2.24 on makes one of, mlx5_0+mlx5_1"`
	Unseen  []string `json:"unseen,omitempty" doc:"what this process may not read"`

	only bool // there may be more
}

// New tells of a machine.
func New(x *doctor.Exam) *Report {
	r := &Report{Schema: Schema, Host: x.Sysctl("kernel/hostname"), Weft: version.String(), Network: x.Network(), Devices: devices(x), TCP: interfaces(x)}
	order, fused := list(x)
	for i, p := range order {
		r.number(p.String(), i)
	}
	r.Fused = fused
	r.GPUs = gpus(x, order)
	r.Unseen = x.Unseen()
	return r
}

// number gives a port its place in the list that NCCL sees.
func (r *Report) number(name string, index int) {
	for _, d := range r.Devices {
		for _, p := range d.Ports {
			if p.Name == name {
				p.Index = &index
			}
		}
	}
}

// Only leaves the device or interface of that name alone in the report.
func (r *Report) Only(name string) error {
	var names []string
	for _, d := range r.Devices {
		names = append(names, d.Name)
	}
	for _, i := range r.TCP.Interfaces {
		names = append(names, i.Name)
	}
	if !slices.Contains(names, name) {
		return fmt.Errorf("there is no device %q: %s has %s", name, r.Host, listed(names))
	}
	r.Devices = slices.DeleteFunc(r.Devices, func(d Device) bool { return d.Name != name })
	r.TCP.Interfaces = slices.DeleteFunc(r.TCP.Interfaces, func(i Interface) bool { return i.Name != name })
	r.GPUs, r.Fused, r.only = []GPU{}, nil, true
	return nil
}
