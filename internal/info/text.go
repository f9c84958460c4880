package info

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Part is what of a report is written as text.
type Part uint8

// The parts.
const (
	All  Part = iota
	GIDs      // the tables of ports alone, a line each entry
	GPUs      // GPUs alone, and the way from each to each device
)

// Text writes the whole report.
func (r *Report) Text(w io.Writer) error { return r.Part(w, All) }

// Part writes a part of it.
func (r *Report) Part(w io.Writer, part Part) error {
	p := &printer{w: w}
	switch part {
	case GIDs:
		r.gids(p)
	case GPUs:
		r.gpus(p)
		r.ways(p)
	default:
		r.all(p)
	}
	return p.err
}

func (r *Report) all(p *printer) {
	p.line("%s: %s; %s", r.Host, r.Weft, r.Network)
	for _, d := range r.Devices {
		d.print(p)
	}
	if len(r.Devices) == 0 && !r.only {
		p.line("\nThere is no RDMA device.")
	}
	for _, f := range r.Fused {
		p.line("\nNCCL from 2.24 on makes one device of %s (NCCL_NET_MERGE_LEVEL, NCCL_IB_MERGE_NICS).", f)
	}
	if len(r.TCP.Interfaces) > 0 {
		p.line("")
		r.TCP.print(p)
	}
	if len(r.GPUs) > 0 {
		p.line("")
		r.gpus(p)
	}
	for _, u := range r.Unseen {
		p.line("\nnot seen: %s", u)
	}
}

// print has the names that ibv_devinfo has.
func (d *Device) print(p *printer) {
	p.line("\nhca_id: %s", d.Name)
	where := "none"
	if d.PCI != "" {
		where = fmt.Sprintf("%s, %s", d.PCI, node(d.NUMA))
		if d.Link != "" {
			where += ", " + d.Link
		}
	}
	for _, f := range [][2]string{{"hca_type", d.Type}, {"board_id", d.Board}, {"fw_ver", d.Firmware}, {"node_guid", d.NodeGUID}, {"sys_image_guid", d.SystemGUID}, {"pci", where}} {
		if f[1] != "" {
			p.line("  %-16s%s", f[0]+":", f[1])
		}
	}
	for _, port := range d.Ports {
		port.print(p)
	}
}

func (o *Port) print(p *printer) {
	p.line("  port: %d", o.Number)
	net := o.NetDev
	if o.MTU > 0 {
		net += fmt.Sprintf(", MTU %d", o.MTU)
	}
	use := "not used: "
	if o.Index != nil {
		use = fmt.Sprintf("device %d, from the GID that is marked: ", *o.Index)
	}
	for _, f := range [][2]string{
		{"state", fmt.Sprintf("PORT_%s (%s)", o.State, dash(o.Phys))}, {"rate", o.Rate}, {"link_layer", o.Link}, {"port_lid", o.LID}, {"netdev", net}, {"weft", use + o.Why},
	} {
		if f[1] != "" {
			p.line("    %-12s%s", f[0]+":", f[1])
		}
	}
	if len(o.GIDs) == 0 {
		return
	}
	rows := [][]string{{"    GID", "TYPE", "ADDRESS", "NETDEV", ""}}
	for _, g := range o.GIDs {
		rows = append(rows, []string{fmt.Sprintf("    %d", g.Index), g.Type, g.Address, dash(g.NetDev), g.mark(o.Link)})
	}
	p.table(rows)
}

func (g *GID) mark(link string) string {
	switch {
	case g.Chosen:
		return "chosen"
	case !g.Usable && g.NetDev == "" && link == "Ethernet":
		return "not usable: its network device is not in this network namespace"
	case !g.Usable:
		return "not usable: its network device is down or not here"
	}
	return ""
}

func (r *Report) gids(p *printer) {
	if len(r.Devices) == 0 {
		p.line("There is no RDMA device.")
		return
	}
	rows := [][]string{{"DEVICE", "PORT", "INDEX", "TYPE", "ADDRESS", "NETDEV", ""}}
	for _, d := range r.Devices {
		for _, o := range d.Ports {
			for _, g := range o.GIDs {
				rows = append(rows, []string{d.Name, fmt.Sprint(o.Number), fmt.Sprint(g.Index), g.Type, g.Address, dash(g.NetDev), g.mark(o.Link)})
			}
		}
	}
	p.table(rows)
}

func (t *TCP) print(p *printer) {
	rows := [][]string{{"INTERFACE", "UP", "Mb/s", "MTU", "KIND", "PCI", "ADDRESSES", "TCP"}}
	for _, i := range t.Interfaces {
		used, up, speed := "-", "no", "-"
		if i.Index != nil {
			used = fmt.Sprintf("interface %d (%s)", *i.Index, t.Why)
		}
		if i.Up {
			up = "yes"
		}
		if i.Mbps > 0 {
			speed = fmt.Sprint(i.Mbps)
		}
		rows = append(rows, []string{i.Name, up, speed, fmt.Sprint(i.MTU), dash(i.Kind), dash(i.PCI), dash(strings.Join(i.Addresses, " ")), used})
	}
	p.table(rows)
}

func (r *Report) gpus(p *printer) {
	rows := [][]string{{"GPU", "PCI", "NUMA", "DEVICE", "WAY", "GPUDIRECT"}}
	for _, g := range r.GPUs {
		way, direct := "-", "no"
		if len(g.Nearest) > 0 {
			way = string(g.Nearest[0].Distance)
		}
		if g.Direct {
			direct = "yes"
		}
		numa := "-"
		if g.NUMA >= 0 {
			numa = fmt.Sprint(g.NUMA)
		}
		rows = append(rows, []string{fmt.Sprint(g.Index), g.PCI, numa, names(g.Nearest), way, direct})
	}
	if len(r.GPUs) == 0 {
		p.line("There is no GPU.")
		return
	}
	p.table(rows)
	for _, g := range r.GPUs {
		p.line("GPU %d: %s. GPUDirect: %s.", g.Index, g.Why, g.Reason)
	}
}

// ways is the table of nvidia-smi topo -m, for the devices that weft uses.
func (r *Report) ways(p *printer) {
	if len(r.GPUs) == 0 || len(r.GPUs[0].Ways) == 0 {
		return
	}
	head := []string{""}
	for _, w := range r.GPUs[0].Ways {
		head = append(head, w.Device)
	}
	rows := [][]string{head}
	for _, g := range r.GPUs {
		row := []string{fmt.Sprintf("GPU %d", g.Index)}
		for _, w := range g.Ways {
			row = append(row, fmt.Sprintf("%s %.3g", w.Distance, w.GBps))
		}
		rows = append(rows, row)
	}
	p.line("")
	p.table(rows)
	p.line("PIX: one PCIe switch joins them; PXB: several; PHB: the processor; SYS: the link between two. Behind it GB/s, as NCCL counts.")
}

// printer keeps the first error.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) line(format string, a ...any) {
	if _, err := fmt.Fprintf(p.w, format+"\n", a...); p.err == nil {
		p.err = err
	}
}

func (p *printer) table(rows [][]string) {
	var b strings.Builder
	t := tabwriter.NewWriter(&b, 0, 8, 2, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(t, strings.Join(row, "\t"))
	}
	t.Flush()
	for line := range strings.Lines(b.String()) {
		p.line("%s", strings.TrimRight(line, " \n"))
	}
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
