package verbs

import (
	"fmt"
	"sync"

	"weft/transport/fastpath"
	"weft/transport/rdma"
)

// adapter is one opened device of libibverbs; its ports are Devices. Memory,
// events and the protection domain belong to it, not to a port.
type adapter struct {
	p       *Provider
	name    string
	sysfs   string
	context object
	asyncFD int
	fds     []int // what a forked child must not keep
	attr    deviceAttr

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
	watch   *watcher
	events  subscribers
	owners  owners
	outage  *outage
}

// openAdapter opens a device of the list. Its descriptors are closed in a
// forked child; nothing else may be done with a context there.
func (p *Provider) openAdapter(e *deviceEntry) (*adapter, error) {
	sysfs := e.sysfs
	if sysfs == "" {
		sysfs = fmt.Sprintf("%s/class/infiniband/%s", p.host.Sysfs, e.name)
	}
	context, cmdFD, asyncFD, errno := p.lib.openDevice(e.device)
	if errno != 0 {
		return nil, fail("ibv_open_device", e.name, errno, "")
	}
	a := &adapter{p: p, name: e.name, sysfs: sysfs, context: context, outage: newOutage()}
	for _, fd := range []int{cmdFD, asyncFD} {
		if fd < 0 {
			continue
		}
		if err := fastpath.TrackFD(fd); err != nil {
			a.close()
			return nil, rdma.Errorf(rdma.Host, "ibv_open_device", "%w", err).On(e.name)
		}
		a.fds = append(a.fds, fd)
	}
	if a.attr, errno = p.lib.queryDevice(context); errno != 0 {
		a.close()
		return nil, fail("ibv_query_device", e.name, errno, "")
	}
	a.expect()
	a.asyncFD = asyncFD
	a.findDirect(e.device)
	a.findAnyOrder(e.device)
	return a, nil
}

// expect notes which optional powers the library already rules out.
func (a *adapter) expect() {
	for call, f := range map[string]*Feature{
		"ibv_query_ece": &a.ece, "ibv_set_ece": &a.ece, "ibv_reg_dmabuf_mr": &a.dmabuf, "ibv_reg_mr_iova2": &a.relaxed,
	} {
		if a.p.lib.lacks[call] {
			f.no(fmt.Sprintf("%s has no %s", a.p.library, call))
		}
	}
}

// close is for an adapter on which nothing is left.
func (a *adapter) close() {
	a.stopWatching()
	a.outage.close()
	for _, fd := range a.fds {
		fastpath.UntrackFD(fd)
	}
	a.fds = nil
	if errno := a.p.lib.closeDevice(a.context); errno != 0 {
		a.p.log.Warn("%v", fail("ibv_close_device", a.name, errno, ""))
	}
}
