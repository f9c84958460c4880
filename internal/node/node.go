// Package node is what a process can say of the machine it runs on: its name, and where
// in sysfs its PCI functions are.
package node

import (
	"os"
	"path/filepath"
	"strings"
)

// Name is the machine's host name; "unknown-host" where the kernel has none to tell.
func Name() string {
	name, err := os.Hostname()
	if err != nil || name == "" {
		return "unknown-host"
	}
	return name
}

// PCIFunction is the folder of the PCI function that a link of sysfs leads to or
// below; "" for what has no hardware.
func PCIFunction(link string) string {
	path, err := filepath.EvalSymlinks(link)
	if err != nil {
		return ""
	}
	for dir := path; len(dir) > 1; dir = filepath.Dir(dir) {
		if isFunction(filepath.Base(dir)) {
			return dir
		}
	}
	return ""
}

// isFunction recognises domain:bus:device.function.
func isFunction(name string) bool {
	domain, rest, _ := strings.Cut(name, ":")
	bus, rest, _ := strings.Cut(rest, ":")
	device, function, _ := strings.Cut(rest, ".")
	return len(domain) >= 4 && isHex(domain) && len(bus) == 2 && isHex(bus) &&
		len(device) == 2 && isHex(device) && len(function) == 1 && isHex(function)
}

func isHex(s string) bool { return strings.Trim(s, "0123456789abcdef") == "" }
