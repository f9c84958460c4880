package verbs

import (
	"errors"
	"reflect"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"weft/internal/knob"
	"weft/internal/report"
	"weft/transport/rdma"
	"weft/transport/verbs/ibv"
	"weft/transport/verbs/machine"
)

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
	p, err := Open(Config{Knobs: knob.Defaults(), Log: log, Host: host, lib: lib})
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
	cq, err := pd.NewCQ(64)
	if err != nil {
		return err
	}
	defer func() { keep(cq.Close()) }()
	q, err := d.NewQP(pd, QPConfig{SendCQ: cq, RecvCQ: cq, SendDepth: 16, RecvDepth: 16, Inline: 200})
	if err != nil {
		return err
	}
	defer func() { keep(q.Close()) }()
	ece, _, err := q.QueryECE()
	if err != nil {
		return err
	}
	if err := q.Connect(t.Context(), Path{GID: d.GIDs()[0], Peer: far(t), ECE: &ece}); err != nil {
		return err
	}
	plain := memory(t, 0x10000, 100)
	r, err := pd.Register(plain, ibv.AccessData)
	if err != nil {
		return err
	}
	defer func() { keep(r.Release()) }()
	buffer, err := NewDMABuf(0x20000, 100, 0, fd, rdma.MemCUDA)
	if err != nil {
		return err
	}
	defer buffer.Close()
	r2, err := pd.Register(buffer, ibv.AccessData)
	if err != nil {
		return err
	}
	defer func() { keep(r2.Release()) }()
	_ = Completion{Status: 12, QPN: q.Number, QP: q}.Explain()
	if err := d.RefreshGIDs(); err != nil {
		return err
	}
	return q.Fence()
}

// Every call fails once, at every place where it is made: what is returned is
// an error that names call and device, and nothing is left behind.
func TestEveryCallFailsOnce(t *testing.T) {
	fd := memfd(t, 0)
	defer unix.Close(fd)
	host := fakeHost(t, eth(1, true, "10.0.0.1/24"), eth(2, true, "10.0.1.1/24"))
	for _, errno := range []syscall.Errno{syscall.ENOMEM, syscall.EIO, syscall.EINVAL, syscall.EOPNOTSUPP} {
		seen := map[string]bool{}
		for n := 0; ; n++ {
			before := pinned.Load()
			f := newFake(t, roce("a", "10.0.0.1", 1), roce("b", "10.0.1.1", 2))
			lib := f.table()
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
			if err != nil && (!errors.Is(err, errno) && !IsNone(err) && e.Cause != report.Unsupported || e.Remedy == "" && !IsNone(err)) {
				t.Errorf("%s (call %d) fails with %v: %v lacks errno or remedy", *failed, n, errno, err)
			}
			if left := f.left(); left != nil {
				t.Errorf("%s (call %d) fails with %v, and these are left: %v", *failed, n, errno, left)
			}
			if now := pinned.Load(); now != before {
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

func TestErrorsNameCallDeviceErrnoAndRemedy(t *testing.T) {
	for _, c := range []struct {
		call  string
		errno syscall.Errno
		cause report.Cause
		want  string
	}{
		{"ibv_open_device", syscall.EACCES, report.Host, "ibv_open_device on mlx5_0: x: permission denied (EACCES); the process needs read and write access to /dev/infiniband"},
		{"ibv_modify_qp", syscall.ETIMEDOUT, report.Network, "(ETIMEDOUT); the peer's GID does not answer"},
		{"ibv_modify_qp", syscall.ENODATA, report.Host, "(ENODATA); the GID table has no such entry"},
		{"ibv_modify_qp", syscall.EINVAL, report.Host, "forced NCCL_IB_GID_INDEX"},
		{"ibv_reg_mr", syscall.EFAULT, report.Usage, "nvidia_peermem"},
		{"ibv_reg_mr", syscall.ENOMEM, report.Host, "weft has "},
		{"ibv_reg_dmabuf_mr", syscall.EBADF, report.Usage, "no DMA-BUF"},
		{"ibv_create_qp", syscall.ENOSPC, report.Host, "no more of these"},
		{"ibv_create_qp", syscall.EOPNOTSUPP, report.Unsupported, "do not have it"},
		{"ibv_query_port", syscall.Errno(4095), report.Host, "(errno 4095)"},
	} {
		err := fail(c.call, "mlx5_0", c.errno, "x")
		if err.Cause != c.cause || !strings.Contains(err.Error(), c.want) || !errors.Is(err, c.errno) {
			t.Errorf("%s %v: %v, %v", c.call, c.errno, err.Cause, err)
		}
	}
}

// failing wraps every function of a table so that the n-th call of all fails
// once, with errno; it answers how many calls there were.
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
