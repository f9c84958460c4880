package machine

import (
	"path/filepath"
	"strconv"
	"strings"
)

// PCIPaths finds the PCI function behind a device and the path that NCCL is
// told; both "" for one without hardware. Soft-RoCE has no device link; the
// network device that it was made on, named in parent, may have one, and is no
// virtual function of an RDMA card.
func (m *Machine) PCIPaths(sysfs string, mergeVFs bool) (function, path string) {
	if function = pciFunction(filepath.Join(sysfs, "device")); function != "" {
		return function, mergePCI(function, mergeVFs)
	}
	if parent := parentLink(sysfs); parent != "" {
		function = pciFunction(m.Sys("class/net", parent, "device"))
	}
	return function, function
}

// pciFunction is the PCI function that a link leads to or below.
func pciFunction(link string) string {
	path, err := filepath.EvalSymlinks(link)
	if err != nil {
		return ""
	}
	for dir := path; len(dir) > 1; dir = filepath.Dir(dir) {
		if isPCIFunction(filepath.Base(dir)) {
			return dir
		}
	}
	return ""
}

// parentLink is the network device that a software device was made on.
func parentLink(sysfs string) string {
	name, err := Read(sysfs, "parent")
	if err != nil || strings.ContainsAny(name, "/\x00") {
		return ""
	}
	return name
}

// isPCIFunction recognises domain:bus:device.function.
func isPCIFunction(name string) bool {
	domain, rest, _ := strings.Cut(name, ":")
	bus, rest, _ := strings.Cut(rest, ":")
	device, function, _ := strings.Cut(rest, ".")
	return len(domain) >= 4 && isHex(domain) && len(bus) == 2 && isHex(bus) &&
		len(device) == 2 && isHex(device) && len(function) == 1 && isHex(function)
}

func isHex(s string) bool { return strings.Trim(s, "0123456789abcdef") == "" }

// mergePCI is the path that NCCL is told: the functions of one card, and with
// vfs its virtual functions, share it, so that NCCL sees them share the slot.
func mergePCI(path string, vfs bool) string {
	n := len(path)
	if n < 4 {
		return path
	}
	if vfs {
		return path[:n-4] + "00.0"
	}
	return path[:n-1] + "0"
}

// PCINumber is domain:bus:device.function as one number.
func PCINumber(path string) uint64 {
	digits := strings.NewReplacer(":", "", ".", "").Replace(filepath.Base(path))
	n, err := strconv.ParseUint(digits, 16, 64)
	if err != nil {
		return 1<<64 - 1
	}
	return n
}
