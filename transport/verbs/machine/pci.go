package machine

import (
	"path/filepath"
	"strconv"
	"strings"

	"weft/internal/node"
)

// PCIPaths finds the PCI function behind a device and the path that NCCL is
// told; both "" for one without hardware. Soft-RoCE has no device link; the
// network device that it was made on, named in parent, may have one, and is no
// virtual function of an RDMA card.
func (m *Machine) PCIPaths(sysfs string, mergeVFs bool) (function, path string) {
	if function = node.PCIFunction(filepath.Join(sysfs, "device")); function != "" {
		return function, MergePCI(function, mergeVFs)
	}
	if parent := parentLink(sysfs); parent != "" {
		function = node.PCIFunction(m.Sys("class/net", parent, "device"))
	}
	return function, function
}

// parentLink is the network device that a software device was made on.
func parentLink(sysfs string) string {
	name, err := Read(sysfs, "parent")
	if err != nil || strings.ContainsAny(name, "/\x00") {
		return ""
	}
	return name
}

// MergePCI is the path that NCCL is told: the functions of one card, and with
// vfs its virtual functions, share it, so that NCCL sees them share the slot.
func MergePCI(path string, vfs bool) string {
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
