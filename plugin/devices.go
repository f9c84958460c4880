package plugin

import (
	"slices"
	"sync"

	"weft/internal/report"
	"weft/transport/device"
)

// family is a kind of tables that counts and makes devices: each host does both twice, and must get the same devices.
type family int

const (
	ofNet family = iota
	ofCollNet
	families
)

// deviceList is what hosts know of devices: first those that were found, then those that a host has made of them.
type deviceList struct {
	host host
	log  report.Logger

	mu      sync.RWMutex
	all     []deviceStrings  // protected by mu, as all below
	first   int              // how many of all the host did not make
	shown   [families]int    // how many of all it knows since it counted anew
	begun   [families]int    // the thread of the last init, until it counts or fuses devices; 0: it has
	strings map[string]*byte // C's copies
}

// deviceStrings is a device with the C strings that hosts keep pointers to.
type deviceStrings struct {
	*device.Device
	name, path *byte
	members    []int // of one that the host made
}

// found begins the list.
func (l *deviceList) found(devices []*device.Device) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, d := range devices {
		l.all = append(l.all, l.describe(d))
	}
	l.first = len(l.all)
	for f := range l.shown {
		l.shown[f] = l.first
	}
}

// real is how many devices were found.
func (l *deviceList) real() int {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.first
}

// at is a device and how many there are; the device is zero where there is none of that number.
func (l *deviceList) at(dev int) (d deviceStrings, n int) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if dev >= 0 && dev < len(l.all) {
		d = l.all[dev]
	}
	return d, len(l.all)
}

// name is a device's, empty where there is none of that number.
func (l *deviceList) name(dev int) string {
	if d, _ := l.at(dev); d.Device != nil {
		return d.Name
	}
	return ""
}

// fuse returns the number of the device that members make. Where they cannot be one, and apart is set, each is a device of its
// own, and the number is the last one's.
func (l *deviceList) fuse(e engine, members []int, f family, apart bool) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.begun[f] == l.host.Thread() {
		l.begun[f] = 0
	}
	d, err := l.device(e, members, f)
	if err == nil || !apart || !l.separate(members) {
		return d, err
	}
	report.Mention(l.log, err)
	for _, m := range members {
		if d, err = l.device(e, []int{m}, f); err != nil {
			return 0, err
		}
	}
	return d, nil
}

// separate reports whether members are several devices. l is locked.
func (l *deviceList) separate(members []int) bool {
	for i, m := range members {
		if m < 0 || m >= l.first || slices.Contains(members[:i], m) {
			return false
		}
	}
	return len(members) > 1
}

// device returns the number of the device that members make. l is locked.
func (l *deviceList) device(e engine, members []int, f family) (int, error) {
	hidden := l.all[l.shown[f]:] // made before the host counted anew, or through the other tables
	same := slices.IndexFunc(hidden, func(d deviceStrings) bool { return slices.Equal(d.members, members) })
	if len(hidden) > 0 && same != 0 && l.none() && e.Unfuse() { // it makes others than before
		l.all, same = l.all[:l.first], -1
	}
	if same >= 0 {
		l.shown[f] += same + 1
		return hidden[same].Index, nil
	}
	d, err := e.Fuse(members)
	if err != nil {
		return 0, err
	}
	named := l.describe(d)
	named.members = members
	l.all = append(l.all, named)
	l.shown[f] = len(l.all)
	return d.Index, nil
}

// describe makes the strings of a device. Hosts keep pointers to them, so they
// are never freed, and one text is made once. l is locked.
func (l *deviceList) describe(d *device.Device) deviceStrings {
	keep := func(text string) *byte {
		if l.strings[text] == nil {
			l.strings[text] = l.host.CString(text)
		}
		return l.strings[text]
	}
	s := deviceStrings{Device: d, name: keep(d.Name)}
	if d.PCIPath != "" {
		s.path = keep(d.PCIPath)
	}
	return s
}

// none reports whether no tables show a device that the host has made. l is locked.
func (l *deviceList) none() bool {
	return !slices.ContainsFunc(l.shown[:], func(n int) bool { return n != l.first })
}

// begins notes an init, which a count of devices may follow on its thread.
func (l *deviceList) begins(f family) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.begun[f] = l.host.Thread()
}

// count is how many devices the host is to know. NCCL counts in two
// places. Right after an init it wants those that it has not fused itself: it has
// loaded the library, which it believes new even if it never went away, or is
// 2.28.3, which counts for each communicator. The fused ones hide then until they
// are made again; 2.24 and 2.25 use them without that. The other count comes after
// fusing, on a thread of its own maybe just after another's init, and wants all.
func (l *deviceList) count(f family) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.begun[f] == l.host.Thread() {
		l.begun[f], l.shown[f] = 0, l.first
	}
	return l.shown[f]
}
