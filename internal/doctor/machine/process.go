package machine

import (
	"math"
	"strconv"
	"strings"
)

// Unlimited is a limit that is none.
const Unlimited = math.MaxInt64

// Limit is a soft and a hard limit of the process, by the name of /proc/self/limits; false: not told.
func (m *Machine) Limit(name string) (soft, hard int64, known bool) {
	for _, line := range m.Lines("/proc/self/limits") {
		rest, ok := strings.CutPrefix(line, name+"  ")
		if f := strings.Fields(rest); ok && len(f) >= 2 {
			return limit(f[0]), limit(f[1]), true
		}
	}
	return 0, 0, false
}

func limit(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return Unlimited
	}
	return n
}

// Status is a line of /proc/self/status.
func (m *Machine) Status(name string) string {
	for _, line := range m.Lines("/proc/self/status") {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// CPUs is how many a list like "0-3,8" names.
func CPUs(list string) (n int) {
	for part := range strings.SplitSeq(list, ",") {
		low, high, isRange := strings.Cut(strings.TrimSpace(part), "-")
		a, err := strconv.Atoi(low)
		if err != nil {
			continue
		}
		b := a
		if isRange {
			if b, err = strconv.Atoi(high); err != nil {
				continue
			}
		}
		n += max(b-a+1, 0)
	}
	return n
}

// Sysctl is a variable of the kernel: net/core/somaxconn.
func (m *Machine) Sysctl(name string) string { return m.Text("/proc/sys", name) }

// Module reports that the kernel has a module, loaded or built in.
func (m *Machine) Module(name string) bool {
	for _, line := range m.Lines("/proc/modules") {
		if strings.HasPrefix(line, name+" ") {
			return true
		}
	}
	return m.Exists("/sys/module", name)
}

// Argument is what the kernel's command line says of a name: its value, and whether it is there.
func (m *Machine) Argument(name string) (value string, there bool) {
	for _, word := range strings.Fields(m.Text("/proc/cmdline")) {
		if n, v, _ := strings.Cut(word, "="); n == name {
			value, there = v, true // the last one counts
		}
	}
	return value, there
}

// Mount is a file system by its folder: its kind and its options.
func (m *Machine) Mount(folder string) (kind, options string) {
	for _, line := range m.Lines("/proc/mounts") {
		if f := strings.Fields(line); len(f) >= 4 && f[1] == folder {
			kind, options = f[2], f[3]
		}
	}
	return kind, options
}

// Container reports that the process is in one, and how that is known.
func (m *Machine) Container() (how string, is bool) {
	switch {
	case m.Exists("/.dockerenv"):
		return "/.dockerenv", true
	case m.Exists("/run/.containerenv"):
		return "/run/.containerenv", true
	case m.Exists("/var/run/secrets/kubernetes.io"):
		return "/var/run/secrets/kubernetes.io", true
	}
	return "", false
}

// Kernel is the version of the kernel as two numbers; false: not told.
func (m *Machine) Kernel() (major, minor int, known bool) {
	f := strings.SplitN(m.Sysctl("kernel/osrelease"), ".", 3)
	if len(f) < 2 {
		return 0, 0, false
	}
	major, err := strconv.Atoi(f[0])
	minor, err2 := strconv.Atoi(strings.TrimRight(f[1], "-+abcdefghijklmnopqrstuvwxyz"))
	return major, minor, err == nil && err2 == nil
}
