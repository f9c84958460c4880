package card

import (
	"errors"
	"slices"
	"sync"
	"syscall"

	"weft/internal/report"
	"weft/transport/task"
	"weft/transport/verbs/fail"
	"weft/transport/verbs/ibv"
)

// device is a card from when it is opened until it is closed. Meanwhile another
// may take its place under the same name, as a driver that resets a card brings one.
type device struct {
	Lib  *Library
	Name string

	use struct {
		sync.Mutex
		held    int  // protected; by those who have made something on it
		closing bool // protected; it goes with the last of them
	}
	life struct {
		sync.RWMutex // read-locked by who asks the card something and does not hold it; taken behind use
		opened       // protected; replaced where nobody holds it; zero once the card is closed
	}
	said sync.Map // what Once has said
}

// Context is what calls name the card by, for who holds it or reads its events.
func (d *device) Context() ibv.Object { return d.life.context }

// AsyncFD is the descriptor of its events, for who reads them; -1: it has none.
func (d *device) AsyncFD() int { return d.life.asyncFD }

// Hold keeps the card open, and the same device, until Release; false: it is being closed.
func (d *device) Hold() bool {
	d.use.Lock()
	defer d.use.Unlock()
	if d.use.closing {
		return false
	}
	d.use.held++
	return true
}

// Release ends one holder's use.
func (d *device) Release() {
	d.use.Lock()
	defer d.use.Unlock()
	d.use.held--
	d.closeIdle()
}

// Close closes the card once nobody holds it. Its trials and the reading of its
// events end before.
func (d *device) Close() {
	d.use.Lock()
	defer d.use.Unlock()
	d.use.closing = true
	d.closeIdle()
}

// closeIdle closes a card that is to be closed and that nobody holds.
func (d *device) closeIdle() {
	if !d.use.closing || d.use.held > 0 {
		return
	}
	d.life.Lock()
	defer d.life.Unlock()
	if d.life.context != 0 {
		d.life.opened.close(d.Lib, d.Name)
		d.life.opened = opened{}
	}
}

// Ask calls the library in the name of a card that the caller need not hold.
func (d *device) Ask(f func(context ibv.Object) syscall.Errno) syscall.Errno {
	d.life.RLock()
	defer d.life.RUnlock()
	if d.life.context == 0 {
		return syscall.ENODEV
	}
	return f(d.life.context)
}

// QueryPort asks for the state of a port.
func (d *device) QueryPort(port uint8) (attr ibv.PortAttr, errno syscall.Errno) {
	errno = d.Ask(func(context ibv.Object) (errno syscall.Errno) {
		attr, errno = d.Lib.QueryPort(context, port)
		return errno
	})
	return attr, errno
}

var errHeld = errors.New("connections or registrations of before are left on it")

// Reopen opens the device anew, once nobody holds the old one. quiet calls swap
// while nobody reads the card's events.
func (d *device) Reopen(quiet func(swap func())) error {
	if d.isHeld() {
		return errHeld
	}
	list, entries, errno := d.Lib.GetDeviceList()
	if errno != 0 {
		return fail.Call("ibv_get_device_list", d.Name, errno, "")
	}
	defer d.Lib.FreeDeviceList(list)
	i := slices.IndexFunc(entries, func(e ibv.DeviceEntry) bool { return e.Name == d.Name })
	if i < 0 {
		return errors.New("the library lists it no more")
	}
	fresh, err := open(d.Lib, &entries[i])
	if err != nil {
		return err
	}
	quiet(func() {
		if err = d.exchange(&fresh); err == nil {
			d.Lib.Log.Info(report.Net, "%s: the card was reopened after its fatal error", d.Name)
		}
		fresh.close(d.Lib, d.Name) // the one that is not used, whichever that is
	})
	return err
}

func (d *device) isHeld() bool {
	d.use.Lock()
	defer d.use.Unlock()
	return d.use.held > 0
}

// exchange puts another opened device in place of the card's, which the caller then has.
func (d *device) exchange(o *opened) error {
	d.use.Lock()
	defer d.use.Unlock()
	if d.use.held > 0 {
		return errHeld
	}
	d.life.Lock()
	defer d.life.Unlock()
	d.life.opened, *o = *o, d.life.opened
	return nil
}

// Once has something said of the card, the first time that it is about that.
func (d *device) Once(about string, say func()) {
	if _, again := d.said.LoadOrStore(about, true); !again {
		say()
	}
}

// Rescue, deferred at the root of every goroutine and where a goroutine calls
// what is not ours, turns a panic into an error of the card, with the stack in
// the log: a defect must not end the host's process. then tells whom it concerns.
func (d *device) Rescue(op string, then func(*report.Error)) {
	if r := recover(); r != nil {
		then(task.Panicked(d.Lib.Log, op, d.Name, r))
	}
}
