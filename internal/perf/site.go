package perf

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"weft/internal/host"
	"weft/internal/node"
	"weft/internal/ranks"
)

// site is one rank at work.
type site struct {
	g     ranks.Group
	o     Options
	busy  func(what string)
	doing string // for messages
	ends  []*end // one for each library
}

// end is a library in a process of its own.
type end struct {
	name   string
	h      *host.Host
	n      *host.Net
	device []Device
	opened int // lines of its log until it told of its devices
}

// Place is where a rank runs, and what it can measure with.
type Place struct {
	Host    string   `json:"host"`
	Boot    string   `json:"boot"`   // of the machine: containers of one have names of their own
	Chosen  int      `json:"chosen"` // the number of the device that is measured, but for a matrix
	Devices []Device `json:"devices"`
	Tables  []string `json:"tables"` // of each library
}

// Device is a device of the first library.
type Device struct {
	Name  string `json:"name"`
	Speed int    `json:"mbits"` // as the library says, in Mbit/s
}

// killAfter is how long a rank's hosts may go on once another rank has failed.
const killAfter = 3 * time.Second

// guard ends the hosts soon after another rank has failed: their calls may never return.
func (s *site) guard(stop chan struct{}) {
	select {
	case <-stop:
		return
	case <-s.g.Failed():
	}
	select {
	case <-stop:
	case <-time.After(killAfter):
		for _, e := range s.ends {
			e.h.Kill()
		}
	}
}

func (s *site) says(what string) {
	s.doing = what
	if s.g.Rank() == 0 {
		s.busy(what)
	}
}

// open starts a process for each library.
func (s *site) open() error {
	s.says("load")
	for _, plugin := range s.o.Plugins {
		h, err := host.Start(host.Options{Bin: s.o.Host, Name: fmt.Sprintf("rank %d's host", s.g.Rank()), Deadline: s.o.Limit + 10*time.Second,
			Log: func(l host.LogLine) {
				if s.o.Log != nil {
					s.o.Log(s.g.Rank(), l)
				}
			}})
		if err != nil {
			return err
		}
		e := &end{name: plugin, h: h}
		s.ends = append(s.ends, e)
		if err := e.load(plugin, s.o.Abi); err != nil {
			return err
		}
	}
	return nil
}

func (e *end) load(plugin string, abi int) error {
	lib, err := e.h.Load(plugin)
	if err != nil {
		return fmt.Errorf("%w (--plugin and --vs name libraries, as dlopen takes them)", err)
	}
	have, err := lib.Tables(host.FamilyNet)
	if err != nil {
		return err
	}
	switch {
	case len(have) == 0:
		first, last := host.FamilyNet.Versions()
		return fmt.Errorf("%s is no network plugin: it exports none of %s to %s", plugin, host.FamilyNet.Symbol(first), host.FamilyNet.Symbol(last))
	case abi == 0:
		abi = slices.Max(have)
	case !slices.Contains(have, abi):
		return fmt.Errorf("--abi %d: %s has %v", abi, plugin, have)
	}
	if e.n, err = lib.BindNet(abi); err != nil {
		return err
	}
	if err := e.n.Init(); err != nil {
		return err
	}
	n, err := e.n.Devices()
	if err != nil {
		return err
	}
	if n == 0 {
		return fmt.Errorf("%s has no device", plugin)
	}
	for d := range n {
		p, err := e.n.Props(d)
		if err != nil {
			return err
		}
		if p.Name == "" { // v2 has no names
			p.Name = fmt.Sprint(d)
		}
		e.device = append(e.device, Device{p.Name, p.Speed})
	}
	e.opened = len(e.h.Logs())
	return nil
}

// meet tells all ranks where each is.
func (s *site) meet() ([]Place, error) {
	first := s.ends[0]
	chosen, err := ranks.PickDevice(s.o.Device, first.names())
	if err != nil {
		return nil, err
	}
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id") // none where /proc is hidden: every rank is taken to share the machine
	p := Place{Host: node.Name(), Boot: strings.TrimSpace(string(boot)), Chosen: chosen, Devices: first.device}
	if s.o.Device != "" && s.o.Matrix { // the others are left out
		return nil, errors.New("--device chooses one port, and a matrix is of all")
	}
	for _, e := range s.ends {
		p.Tables = append(p.Tables, host.FamilyNet.Symbol(e.n.Version))
		for d := range first.device {
			if (s.o.Matrix || d == chosen) && e.like(first, d) >= len(e.device) {
				return nil, fmt.Errorf("%s has no device like %s of %s; it has %s: choose one that both have with --device, by its name", e.name, first.device[d].Name, first.name, strings.Join(e.names(), " "))
			}
		}
	}
	all, err := gather(s.g, "places", p)
	if err != nil {
		return nil, err
	}
	for i, other := range all {
		if len(other.Tables) != len(p.Tables) {
			return nil, fmt.Errorf("rank %d measures %d libraries and rank %d %d: give --vs to all or to none", s.g.Rank(), len(p.Tables), i, len(other.Tables))
		}
	}
	return all, nil
}

func (e *end) names() (names []string) {
	for _, d := range e.device {
		names = append(names, d.Name)
	}
	return names
}

// like is the number of the end's device that is called as one of the first library is, or has its number.
func (e *end) like(first *end, device int) int {
	if d := slices.Index(e.names(), first.device[device].Name); d >= 0 {
		return d
	}
	return device
}

// close ends the hosts.
func (s *site) close() {
	for _, e := range s.ends {
		_ = e.h.Close() // what it may say has been said by the calls before
	}
}
