package machine

import (
	"path"
	"slices"
	"strconv"
	"strings"
)

// Function is a function of a PCI device.
type Function struct {
	Address         string // domain:bus:device.function
	Path            string // in sysfs, through the bridges above it
	Vendor, Class   uint64
	NUMA            int64   // node; -1: not told
	Driver          string  // "": none
	Speed, MaxSpeed float64 // GT/s of a lane; 0: not told
	Width, MaxWidth int64   // lanes; 0: not told
	Group           string  // of the IOMMU; "": none
	Physical        string  // address of the function that this virtual one belongs to
	m               *Machine
}

// Vendors, as PCI numbers them.
const (
	VendorNVIDIA   = 0x10de
	VendorMellanox = 0x15b3
	VendorAMD      = 0x1002
	VendorBroadcom = 0x14e4
	VendorIntel    = 0x8086
)

const pciFolder = "/sys/bus/pci/devices"

func (m *Machine) readFunctions() (all []*Function) {
	for _, address := range m.List(pciFolder) {
		at, err := m.resolve(path.Join(pciFolder, address))
		if err != nil {
			continue
		}
		f := &Function{Address: address, Path: at, NUMA: -1, m: m}
		f.Class, f.Vendor = m.hex(at, "class"), m.hex(at, "vendor")
		if !f.GPU() && !f.Network() {
			continue // nothing is asked about the others
		}
		f.fill()
		all = append(all, f)
	}
	return all
}

func (f *Function) fill() {
	m := f.m
	if n, ok := m.Int(f.Path, "numa_node"); ok {
		f.NUMA = n
	}
	f.Driver = m.base(f.Path, "driver")
	f.Speed, f.MaxSpeed = Gigatransfers(m.Text(f.Path, "current_link_speed")), Gigatransfers(m.Text(f.Path, "max_link_speed"))
	f.Width, _ = m.Int(f.Path, "current_link_width")
	f.MaxWidth, _ = m.Int(f.Path, "max_link_width")
	f.Group, f.Physical = m.base(f.Path, "iommu_group"), m.base(f.Path, "physfn")
}

// GPU reports a display controller of NVIDIA or AMD, or an accelerator of AMD.
func (f *Function) GPU() bool {
	kind := f.Class >> 8
	return f.Vendor == VendorNVIDIA && (kind == 0x0300 || kind == 0x0302) || f.Vendor == VendorAMD && (kind == 0x0380 || kind == 0x1200 || kind == 0x0302)
}

// Network reports a controller of Ethernet or InfiniBand.
func (f *Function) Network() bool { return f.Class>>8 == 0x0200 || f.Class>>8 == 0x0207 }

// Gbps is what the link carries in one direction now, without what the encoding takes; 0: not known.
func (f *Function) Gbps() float64 { return f.Speed * float64(f.Width) * encoding(f.Speed) }

func encoding(speed float64) float64 {
	if speed <= 5 {
		return 0.8 // 8 of 10 bits
	}
	return 128.0 / 130
}

// Bridges are the functions above it, from the root port down.
func (f *Function) Bridges() (paths []string) {
	for at := path.Dir(f.Path); strings.Count(path.Base(at), ":") == 2; at = path.Dir(at) {
		paths = append(paths, at)
	}
	slices.Reverse(paths)
	return paths
}

// Functions are those of networks and GPUs, by address.
func (m *Machine) Functions() []*Function { return m.functions() }

// GPUs are the machine's, by address.
func (m *Machine) GPUs() (all []*Function) {
	for _, f := range m.Functions() {
		if f.GPU() {
			all = append(all, f)
		}
	}
	return all
}

// function is the one that a path in sysfs belongs to; nil: none.
func (m *Machine) function(name ...string) *Function {
	at, err := m.resolve(path.Join(name...))
	if err != nil {
		return nil
	}
	for _, f := range m.Functions() {
		if at == f.Path || strings.HasPrefix(at, f.Path+"/") {
			return f
		}
	}
	return nil
}

// hex is a number of sysfs; 0: there is none.
func (m *Machine) hex(name ...string) uint64 {
	n, _ := strconv.ParseUint(strings.TrimPrefix(m.Text(name...), "0x"), 16, 64)
	return n
}

// base is the last name of what a link leads to.
func (m *Machine) base(name ...string) string {
	at, err := m.resolve(path.Join(name...))
	if err != nil {
		return ""
	}
	m.shown.thing(at, true)
	return path.Base(at)
}

// Gigatransfers reads "32.0 GT/s PCIe".
func Gigatransfers(text string) float64 {
	word, _, _ := strings.Cut(text, " ")
	n, err := strconv.ParseFloat(word, 64)
	if err != nil {
		return 0
	}
	return n
}
