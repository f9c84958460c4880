package host

import "time"

// Coll calls a collNet table with NCCL's threads: setup and teardown on the
// service thread, data on the progress thread.
type Coll struct {
	*Table
	Ctx   Ptr // set by Init from v11 on
	Setup string
	Data  string
}

// BindColl binds ncclCollNetPlugin_v<version>.
func (l *Lib) BindColl(version int) (*Coll, error) {
	t, err := l.Bind(FamilyColl, version, "")
	if err != nil {
		return nil, err
	}
	return &Coll{Table: t, Setup: "service", Data: "progress"}, nil
}

// HandleSize is NCCL_NET_HANDLE_MAXSIZE of the releases that use this table.
func (c *Coll) HandleSize() int {
	if c.Version < SinceGroups {
		return 64
	}
	return handleRoom
}

// handleRoom is what a handle takes in the array that connect gets.
const handleRoom = 128

// Gathers tells whether the table has all-gather and reduce-scatter.
func (c *Coll) Gathers() bool { return c.Slots["iallgather"] && c.Slots["ireducescatter"] }

// Init calls init on the main thread and keeps the context.
func (c *Coll) Init() error {
	r, err := c.Table.Call("main", "init", nil)
	c.Ctx = r.Ptr("ctx")
	return err
}

// Devices is the number of devices.
func (c *Coll) Devices() (int, error) {
	r, err := c.Table.Call("main", "devices", nil)
	return int(r.Int("n")), err
}

// Props calls getProperties.
func (c *Coll) Props(dev int) (*Props, error) {
	r, err := c.Table.Call("main", "props", Args{"dev", dev})
	return props(r), err
}

// MakeVDevice makes one device of several.
func (c *Coll) MakeVDevice(devs []int) (int, error) {
	r, err := c.Table.Call("main", "makeVDevice", Args{"devs", devs, "n", len(devs), "d", -1})
	return int(r.Int("d")), err
}

// ReduceSupport tells whether the plugin reduces a type with an operation.
func (c *Coll) ReduceSupport(t DataType, op RedOp) (bool, error) {
	r, err := c.Table.Call("main", "reduceSupport", Args{"type", int(t), "op", int(op)})
	return r.Int("supported") != 0, err
}

// Listen listens on a device and returns the handle for the other ranks.
func (c *Coll) Listen(dev int) (handle []byte, comm Ptr, err error) {
	at, err := c.h.Alloc(handleRoom)
	if err != nil {
		return nil, 0, err
	}
	r, err := c.Table.Call(c.Setup, "listen", Args{"ctx", c.Ctx, "dev", dev, "handle", at})
	if err != nil {
		return nil, 0, err
	}
	handle, err = c.h.Read(at, int64(c.HandleSize()))
	return handle, r.Ptr("comm"), err
}

// Connect makes the group out of all ranks' handles. It blocks until every rank has called it.
func (c *Coll) Connect(handles [][]byte, rank int, listen Ptr, limit time.Duration) (Ptr, error) {
	p, err := c.GoConnect(handles, rank, listen, limit)
	if err != nil {
		return 0, err
	}
	r, err := p.Wait()
	return r.Ptr("comm"), err
}

// GoConnect is Connect that does not wait: the comm is the reply's.
func (c *Coll) GoConnect(handles [][]byte, rank int, listen Ptr, limit time.Duration) (*Pending, error) {
	at, err := c.h.Alloc(int64(len(handles)) * handleRoom)
	if err != nil {
		return nil, err
	}
	for i, text := range handles {
		if err := c.h.Write(at+Ptr(i*handleRoom), text); err != nil {
			return nil, err
		}
	}
	return c.h.GoIn(limit, c.Setup, "coll.connect", Args{"on", c.As, "handles", at, "nranks", len(handles), "rank", rank, "listen", listen}), nil
}

// RegMr registers host memory (type 1 = NCCL_PTR_HOST).
func (c *Coll) RegMr(comm, data Ptr, size int64) (Ptr, error) {
	r, err := c.Table.Call(c.Setup, "regMr", Args{"comm", comm, "data", data, "size", size, "type", 1})
	return r.Ptr("mh"), err
}

// DeregMr is deregMr.
func (c *Coll) DeregMr(comm, mh Ptr) error {
	_, err := c.Table.Call(c.Setup, "deregMr", Args{"comm", comm, "mh", mh})
	return err
}

// Start calls iallreduce, iallgather or ireducescatter once; a request of 0 means not now.
func (c *Coll) Start(slot string, a Args) (Ptr, error) {
	r, err := c.Table.Call(c.Data, slot, a)
	return r.Ptr("req"), err
}

// Test calls test once.
func (c *Coll) Test(req Ptr) (done bool, err error) {
	r, err := c.Table.Call(c.Data, "test", Args{"req", req})
	return r.Int("done") != 0, err
}

// CloseColl leaves the group.
func (c *Coll) CloseColl(comm Ptr) error {
	_, err := c.Table.Call(c.Setup, "closeColl", Args{"comm", comm})
	return err
}

// CloseListen closes a listening comm.
func (c *Coll) CloseListen(comm Ptr) error {
	_, err := c.Table.Call(c.Setup, "closeListen", Args{"comm", comm})
	return err
}

// Finalize ends the context (v11 and later; before, there is nothing to call).
func (c *Coll) Finalize() error {
	if c.Version < SinceContexts {
		return nil
	}
	_, err := c.Table.Call("main", "finalize", Args{"ctx", c.Ctx})
	return err
}
