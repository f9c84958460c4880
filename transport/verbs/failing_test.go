package verbs

import (
	"errors"
	"net/netip"
	"reflect"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"weft/internal/fakeibv"
	"weft/internal/knob"
	"weft/internal/report"
	"weft/transport/memory"
	"weft/transport/rdma"
	"weft/transport/verbs/fail"
	"weft/transport/verbs/gid"
	"weft/transport/verbs/ibv"
	"weft/transport/verbs/machine"
	"weft/transport/verbs/qp"
)

// far is a peer's end in the subnet of card a.
var far = qp.End{QPN: 77, PSN: 0x123456, MTU: 3, GID: gid.GID{Addr: netip.MustParseAddr("::ffff:10.0.0.9"), Index: 9, Type: ibv.GIDRoCEv2, Bits: 24}}

// connection goes through the life of one connection and gives back all of it,
// whatever fails on the way; it returns the first error.
func connection(t *testing.T, lib *ibv.Calls, host *machine.Machine, fd int) (err error) {
	log := new(report.Recorder)
	defer func() {
		for _, l := range log.Lines() {
			if strings.ContainsAny(l, "\n") {
				t.Errorf("a line is not one line: %q", l)
			}
		}
	}()
	p, err := Open(Config{Knobs: knob.Defaults(), Log: log, host: host, lib: lib})
	if err != nil {
		return err
	}
	defer p.Close()
	keep := func(e error) {
		if err == nil {
			err = e
		}
	}
	d := p.Devices()[0]
	pd, err := d.AcquirePD()
	if err != nil {
		return err
	}
	defer func() { keep(pd.Release()) }()
	cq, err := qp.NewCQ(pd, 64)
	if err != nil {
		return err
	}
	defer func() { keep(cq.Close()) }()
	q, err := qp.New(d, pd, qp.Config{SendCQ: cq, RecvCQ: cq, SendDepth: 16, RecvDepth: 16, Inline: 200})
	if err != nil {
		return err
	}
	defer func() { keep(q.Close()) }()
	ece, _, err := q.QueryECE()
	if err != nil {
		return err
	}
	if err := q.Connect(t.Context(), qp.Path{GID: d.GIDs()[0], Peer: far, ECE: &ece}); err != nil {
		return err
	}
	plain := hostMemory(t, 0x10000, 100)
	r, err := pd.Register(plain, ibv.AccessData)
	if err != nil {
		return err
	}
	defer func() { keep(r.Release()) }()
	buffer, err := memory.NewDMABuf(0x20000, 100, 0, fd, rdma.MemCUDA)
	if err != nil {
		return err
	}
	defer buffer.Close()
	r2, err := pd.Register(buffer, ibv.AccessData)
	if err != nil {
		return err
	}
	defer func() { keep(r2.Release()) }()
	_ = qp.Completion{Status: 12, QPN: q.Number, QP: q}.Explain()
	if err := d.Look(); err != nil {
		return err
	}
	return q.Fence()
}

// Every call fails once, at every place where it is made: what is returned is
// an error that names call and device, and nothing is left behind.
func TestEveryCallFailsOnce(t *testing.T) {
	fd := fakeibv.Memfd(t, 0)
	defer unix.Close(fd)
	host := fakeibv.Host(t, fakeibv.Eth(1, true, "10.0.0.1/24"), fakeibv.Eth(2, true, "10.0.1.1/24"))
	for _, errno := range []syscall.Errno{syscall.ENOMEM, syscall.EIO, syscall.EINVAL, syscall.EOPNOTSUPP} {
		seen := map[string]bool{}
		for n := 0; ; n++ {
			before := fail.Pinned.Load()
			f := fakeibv.New(t, fakeibv.RoCE("a", "10.0.0.1", 1), fakeibv.RoCE("b", "10.0.1.1", 2))
			lib := f.Table()
			made, failed := failing(lib, n, errno)
			err := connection(t, lib, host, fd)
			if *made <= n {
				if err != nil {
					t.Errorf("nothing fails, yet %v", err)
				}
				if n < 30 {
					t.Errorf("only %d calls", n)
				}
				break
			}
			seen[*failed] = true
			var e *report.Error
			if err != nil && !errors.As(err, &e) {
				t.Errorf("%s (call %d) fails with %v: %v is no *report.Error", *failed, n, errno, err)
			}
			if err != nil && (!errors.Is(err, errno) && !errors.Is(err, ErrNone) && e.Cause != report.Unsupported || e.Remedy == "" && !errors.Is(err, ErrNone)) {
				t.Errorf("%s (call %d) fails with %v: %v lacks errno or remedy", *failed, n, errno, err)
			}
			if left := f.Left(); left != nil {
				t.Errorf("%s (call %d) fails with %v, and these are left: %v", *failed, n, errno, left)
			}
			if now := fail.Pinned.Load(); now != before {
				t.Errorf("%s (call %d): %d bytes count as registered", *failed, n, now-before)
			}
		}
		for _, call := range []string{"GetDeviceList", "OpenDevice", "QueryDevice", "QueryPort", "QueryGIDTable", "AllocPD", "CreateCQ", "CreateQP", "ModifyQP",
			"QueryECE", "SetECE", "RegMRIOVA2", "RegDMABufMR", "DeregMR", "DestroyQP", "DestroyCQ", "DeallocPD", "CloseDevice"} {
			if !seen[call] {
				t.Errorf("%s was never made to fail", call)
			}
		}
	}
}

// failing wraps every function of a table so that the n-th call of all fails
// once, with errno; it returns how many calls there were.
func failing(c *ibv.Calls, n int, errno syscall.Errno) (made *int, failed *string) {
	made, failed = new(int), new(string)
	var mu sync.Mutex
	v := reflect.ValueOf(c).Elem()
	for i := range v.NumField() {
		field := v.Field(i)
		if field.Kind() != reflect.Func || v.Type().Field(i).Name == "AckAsyncEvent" || v.Type().Field(i).Name == "FreeDeviceList" {
			continue // these two cannot fail
		}
		name, plain := v.Type().Field(i).Name, reflect.NewAt(field.Type(), field.Addr().UnsafePointer()).Elem()
		inner := reflect.ValueOf(plain.Interface())
		last := field.Type().NumOut() - 1
		plain.Set(reflect.MakeFunc(field.Type(), func(args []reflect.Value) []reflect.Value {
			mu.Lock()
			hit := *made == n
			*made++
			if hit {
				*failed = name
			}
			mu.Unlock()
			if !hit {
				return inner.Call(args)
			}
			// A destroying call that fails has destroyed nothing; do so, to tell what was forgotten from what could not be.
			if strings.HasPrefix(name, "Destroy") || strings.HasPrefix(name, "Dealloc") || strings.HasPrefix(name, "Dereg") || name == "CloseDevice" {
				inner.Call(args)
			}
			out := make([]reflect.Value, last+1)
			for j := range out {
				out[j] = reflect.Zero(field.Type().Out(j))
			}
			out[last] = reflect.ValueOf(errno)
			return out
		}))
	}
	return made, failed
}
