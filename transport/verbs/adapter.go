package verbs

import (
	"fmt"
	"sync"
	"syscall"

	"weft/internal/report"
	"weft/transport/fastpath"
	"weft/transport/verbs/ibv"
)

// adapter is one opened device of libibverbs; its ports are Devices. Memory,
// events and the protection domain belong to it, not to a port.
type adapter struct {
	p     *Provider
	name  string
	sysfs string
	attr  ibv.DeviceAttr

	life   sync.RWMutex // read-locked by who asks the card something without a protection domain of it
	opened              // zero once it is closed

	ece     Feature // agreeing on the vendor's enhancements
	dmabuf  Feature // registering DMA-BUFs
	relaxed Feature // relaxed ordering

	plainly, declines sync.Once // what is said of ece

	direct   string  // PCI path of its data-direct function; "": none
	directly Feature // registering DMA-BUFs through that
	indirect sync.Once

	anyOrder int    // receives of a queue pair whose requests arrive in any order
	inOrder  string // why there are none

	domains [2]domain // of the card; of its data-direct view
	closing bool      // protected by both domains; the device goes once nothing is left on it
	reader  *eventReader
	events  subscribers
	owners  owners
	outage  *outage
}

// opened is a device as the library has opened it. What changes it holds
// adapter.life and both domains, which are empty then.
type opened struct {
	context ibv.Object
	asyncFD int
	fds     []int // what a forked child must not keep; nothing else may be done with a context there
}

// openDevice opens a device of the list.
func (p *Provider) openDevice(e *ibv.DeviceEntry) (o opened, err error) {
	context, cmdFD, asyncFD, errno := p.lib.OpenDevice(e.Device)
	if errno != 0 {
		return o, fail("ibv_open_device", e.Name, errno, "")
	}
	o = opened{context: context, asyncFD: asyncFD}
	for _, fd := range []int{cmdFD, asyncFD} {
		if fd < 0 {
			continue
		}
		if err := fastpath.TrackFD(fd); err != nil {
			p.closeDevice(e.Name, o)
			return opened{}, report.Errorf(report.Host, "ibv_open_device", "%w", err).On(e.Name)
		}
		o.fds = append(o.fds, fd)
	}
	return o, nil
}

// closeDevice is for one on which nothing is left.
func (p *Provider) closeDevice(name string, o opened) {
	for _, fd := range o.fds {
		fastpath.UntrackFD(fd)
	}
	if errno := p.lib.CloseDevice(o.context); errno != 0 {
		p.log.Warn("%v", fail("ibv_close_device", name, errno, ""))
	}
}

// openAdapter opens a device of the list, for good.
func (p *Provider) openAdapter(e *ibv.DeviceEntry) (*adapter, error) {
	sysfs := e.Sysfs
	if sysfs == "" {
		sysfs = fmt.Sprintf("%s/class/infiniband/%s", p.host.Sysfs, e.Name)
	}
	o, err := p.openDevice(e)
	if err != nil {
		return nil, err
	}
	a := &adapter{p: p, name: e.Name, sysfs: sysfs, opened: o, outage: newOutage()}
	attr, errno := p.lib.QueryDevice(o.context)
	if errno != 0 {
		a.close()
		return nil, fail("ibv_query_device", e.Name, errno, "")
	}
	a.attr = attr
	a.expect()
	a.findDirect(e.Device)
	a.findAnyOrder(e.Device)
	return a, nil
}

// expect notes which optional powers the library already rules out.
func (a *adapter) expect() {
	for call, f := range map[string]*Feature{
		"ibv_query_ece": &a.ece, "ibv_set_ece": &a.ece, "ibv_reg_dmabuf_mr": &a.dmabuf, "ibv_reg_mr_iova2": &a.relaxed,
	} {
		if a.p.lib.Lacks[call] {
			f.no(fmt.Sprintf("%s has no %s", a.p.library, call))
		}
	}
}

// queryPort asks for the state of a port.
func (a *adapter) queryPort(port uint8) (ibv.PortAttr, syscall.Errno) {
	a.life.RLock()
	defer a.life.RUnlock()
	if a.context == 0 {
		return ibv.PortAttr{}, syscall.ENODEV
	}
	return a.p.lib.QueryPort(a.context, port)
}

// close ends the adapter's trials and its reading of events, and closes the device once nothing is left on it.
func (a *adapter) close() {
	a.outage.close() // a trial may begin to read anew
	a.stopReading()
	a.closeIdle(true)
}

// closeIdle closes a device that is to be closed, from now on or already, unless something is left on it.
func (a *adapter) closeIdle(closing bool) {
	idle := true
	for i := range a.domains {
		d := &a.domains[i]
		d.Lock()
		defer d.Unlock()
		idle = idle && d.pd == nil
	}
	a.closing = a.closing || closing
	if !a.closing || !idle || a.context == 0 {
		return
	}
	a.life.Lock()
	defer a.life.Unlock()
	a.p.closeDevice(a.name, a.opened)
	a.opened = opened{}
}
