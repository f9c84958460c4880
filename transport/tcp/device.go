package tcp

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"weft/internal/knob"
	"weft/internal/node"
	"weft/internal/report"
	"weft/transport/rdma"
	"weft/transport/tcp/ifname"
)

// Device is one interface that carries TCP.
type Device struct {
	rdma.Device
	Streams   int  // TCP streams of a connection whose listener is this device
	SpeedRead bool // SpeedMbps came from sysfs; otherwise it is NCCL's guess for such links
}

// guessedMbps is what NCCL's own sockets report for a link that has no speed.
const guessedMbps = 10000

// Devices chooses among the host's interfaces as NCCL's sockets would and
// reads what the tables report about each. There is at least one, or an error
// that says what was there instead.
func (h *Host) Devices(k *knob.Values, log report.Logger) ([]*Device, error) {
	found, why := h.Choose(k, log)
	if len(found) == 0 {
		return nil, h.Nothing(k)
	}
	devices := make([]*Device, 0, len(found))
	names := make([]string, 0, len(found))
	for i, c := range found {
		d := h.describe(i, c)
		threads, perThread := streamCounts(k, h.vendor(c.Name))
		d.Streams = cutStreams(threads, perThread, d.Name, i == 0, log)
		devices = append(devices, d)
		names = append(names, fmt.Sprintf("[%d]%v", i, &d.Device))
	}
	log.Info(report.Init, "using %s (%s)", strings.Join(names, " "), why)
	for _, d := range devices {
		log.Info(report.Init, "%s", d.line())
	}
	return devices, nil
}

func (h *Host) describe(index int, c ifname.Choice) *Device {
	speed, read := h.speed(c.Name)
	return &Device{
		Device: rdma.Device{
			Index: index, Name: c.Name, PCIPath: h.pciPath(c.Name), GUID: uint64(index),
			SpeedMbps: speed, Port: 0, MaxComms: rdma.MaxComms, MaxRecvs: rdma.MaxRecvs,
			Latency: 0, Pointers: rdma.MemHost, MTU: c.MTU, IfIndex: c.Index, Addrs: c.Addrs,
			RailID: rdma.NoID, PlaneID: rdma.NoID,
		},
		SpeedRead: read,
	}
}

// line is the device's line in the log of init.
func (d *Device) line() string {
	speed := fmt.Sprintf("%d Mb/s", d.SpeedMbps)
	if !d.SpeedRead {
		speed = fmt.Sprintf("no speed in sysfs, reported as %d Mb/s", d.SpeedMbps)
	}
	pci := "without PCI address"
	if d.PCIPath != "" {
		pci = "PCI " + filepath.Base(d.PCIPath)
	}
	return fmt.Sprintf("interface %d is %s: TCP, %s, MTU %d, %s, streams per connection: %d, addresses %v; memory %v: sockets copy, GPU memory is staged by NCCL",
		d.Index, d.Name, speed, d.MTU, pci, d.Streams, d.Addrs, d.Pointers)
}

func (h *Host) netFile(name string, parts ...string) string {
	return filepath.Join(append([]string{h.Sysfs, "class", "net", name}, parts...)...)
}

// speed reads Mb/s. The file is empty, negative or unreadable for links that
// have no speed of their own: bridges, tunnels, most virtual NICs.
func (h *Host) speed(name string) (mbps int, read bool) {
	text, err := os.ReadFile(h.netFile(name, "speed"))
	if err != nil {
		return guessedMbps, false
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || n <= 0 {
		return guessedMbps, false
	}
	return n, true
}

// pciPath is the PCI function that the interface hangs from: for a virtio NIC
// the parent of the device that sysfs links to, since NCCL's topology code
// takes the last component for a bus id. "" for what has no hardware.
func (h *Host) pciPath(name string) string {
	return node.PCIFunction(h.netFile(name, "device"))
}

func (h *Host) vendor(name string) string {
	text, err := os.ReadFile(h.netFile(name, "device", "vendor"))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}
