package plugin

import (
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weft/abi"
	"weft/internal/knob"
	"weft/internal/report"
	"weft/transport/verbs"
)

func TestCode(t *testing.T) {
	for _, c := range []struct {
		cause    report.Cause
		old, new int32 // in tables up to v5, and since
	}{
		{report.Peer, 2, 6}, {report.Network, 2, 6}, {report.Host, 2, 2}, {report.Usage, 5, 5}, {report.Misuse, 3, 3},
		{report.Internal, 3, 3}, {report.Unsupported, 3, 3}, {report.Cuda, 1, 1},
	} {
		err := fmt.Errorf("more: %w", report.Errorf(c.cause, "x", "y"))
		for table := abi.NetFirst; table <= abi.NetNewest; table++ {
			want := c.new
			if table < tableRemote {
				want = c.old
			}
			if got := Code(err, table); got != want {
				t.Errorf("%v in v%d: %d, want %d", c.cause, table, got, want)
			}
		}
	}
	if Code(nil, 5) != 0 || Code(errors.New("x"), 5) != 3 || Code(report.Errorf(report.Peer, "x", "y"), 0) != 6 {
		t.Error("nil, unknown, or no table")
	}
}

func TestDoneSaysAnErrorOnceThroughItsOwner(t *testing.T) {
	b := newBench(t, nil)
	b.init(4, nccl)
	b.init(abi.NetNewest, other)
	b.host.forget()
	e := report.Errorf(report.Peer, "connect", "gone")
	b.engine.contexts[0].err, b.engine.contexts[1].err = e, errors.New("odd")
	var buffer [128]byte
	for range 3 {
		a := &abi.NetListenArgs{Ctx: 4, Handle: pointer(&buffer), ListenComm: new(uintptr)}
		if code := b.done("listen", b.Listen(a)); code != resultSystemError {
			t.Errorf("code %d", code)
		}
	}
	if w := b.host.lines(levelWarn, "connect: gone"); len(w) != 1 || w[0].logger != nccl {
		t.Errorf("warnings %v", w)
	}
	if code := b.done("y", abi.NetDefaults{}.Finalize(nil)); code != resultInternalError || len(b.host.lines(levelWarn, "y: not supported")) != 1 {
		t.Errorf("unsupported: %d, %v", code, b.host.said)
	}
}

func TestAPanicBecomesAnErrorWithItsPlace(t *testing.T) {
	b := newBench(t, nil)
	b.mustInit(abi.NetNewest)
	b.host.forget()
	code := func() (code int32) {
		defer func() {
			if r := recover(); r != nil {
				code = b.recovered("listen", r)
			}
		}()
		var none *fakeContext
		_ = none.Close()
		return 0
	}()
	w := b.host.lines(levelWarn, "listen: internal error", "nil pointer", "fake_test.go")
	if code != resultInternalError || len(w) != 1 || len(w[0].text) > 1000 {
		t.Errorf("code %d, said %v", code, b.host.said)
	}
}

// What happens on a comm is said to the host whose comm it is.
func TestErrorsOfACommGoToItsHost(t *testing.T) {
	b := newBench(t, nil)
	b.init(8, nccl)
	b.init(abi.NetNewest, other)
	b.host.forget()
	c := b.engine.comm(b.engine.contexts[1], sendSide)
	c.err = report.Errorf(report.Network, "regMr", "odd")
	err := b.RegMr(&abi.NetRegMrArgs{Comm: c.handle, Mhandle: new(uintptr)})
	if code := b.done("regMr", err); code != resultRemoteError {
		t.Errorf("code %d", code)
	}
	if w := b.host.lines(levelWarn); len(w) != 1 || w[0].logger != other {
		t.Errorf("said %v", b.host.said)
	}
}

func TestAPanickingLogIsSurvived(t *testing.T) {
	b := newBench(t, nil)
	b.mustInit(abi.NetNewest)
	b.log = panicking{}
	if code := b.recovered("listen", "boom"); code != resultInternalError {
		t.Errorf("code %d", code)
	}
}

type panicking struct{ report.Discard }

func (panicking) Warn(string, ...any) { panic("again") }

func TestBlockingLimits(t *testing.T) {
	b := newBench(t, map[string]string{"WEFT_CONNECT_TIMEOUT": "3"})
	if b.blockingDeadline(waitConnect) != 61*time.Second || b.blockingDeadline(waitAccept) != 10*time.Minute {
		t.Error("defaults before init")
	}
	b.mustInit(4)
	if b.blockingDeadline(waitConnect) != 4*time.Second {
		t.Error("the knob is not used")
	}
	for _, kind := range []int{waitConnect, waitAccept} {
		if code := b.done("wait", b.blockingTimedOut(kind, 4, time.Second)); code != resultSystemError {
			t.Errorf("kind %d: %d", kind, code)
		}
	}
	if code := b.done("wait", b.blockingTimedOut(waitAccept, 3, time.Second)); code != resultSystemError || len(b.host.lines(levelWarn, "WEFT_")) != 3 {
		t.Errorf("%d, %v", code, b.host.said)
	}
	for kind, limit := range map[int]time.Duration{waitFlush: heldFlush, waitCollFlush: 10 * time.Second} {
		if code := b.done("wait", b.blockingTimedOut(kind, 3, time.Second)); code != resultInternalError || b.blockingDeadline(kind) != limit {
			t.Errorf("kind %d: %d", kind, code)
		}
	}
}

// RDMA that is not there, or fails, leaves a line and TCP.
func TestVerbsIsOptional(t *testing.T) {
	for _, c := range []struct {
		err   error
		env   map[string]string
		cards []string
		level int32
		says  string
	}{
		{verbs.ErrNone, nil, nil, levelInfo, "no RDMA here"},
		{verbs.ErrNone, nil, []string{"mlx5_0", "mlx5_1"}, levelWarn, "though this machine has mlx5_0, mlx5_1"},
		{verbs.ErrNone, map[string]string{"NCCL_IB_HCA": "mlx5_4"}, nil, levelWarn, "though NCCL_IB_HCA=mlx5_4 names devices"},
		{verbs.ErrNone, map[string]string{"NCCL_IB_DISABLE": "1", "NCCL_IB_HCA": "mlx5_4"}, []string{"mlx5_0"}, levelInfo, "no RDMA here"},
		{report.Errorf(report.Host, "ibv_open_device", "out of memory").Try("see ulimit -l"), nil, []string{"mlx5_0"}, levelWarn, "ulimit -l"},
	} {
		b := newBench(t, c.env)
		b.cards = func() []string { return c.cards }
		b.verbs = func(*knob.Values, report.Logger) (*verbs.Provider, error) { return nil, c.err }
		b.mustInit(abi.NetNewest)
		if b.opened != 1 || len(b.host.lines(c.level, c.says)) != 1 || len(b.host.lines(levelInfo, "verbs is not used"))+len(b.host.lines(levelWarn, "verbs is not used")) != 1 {
			t.Errorf("%v: opened %d, %v", c.err, b.opened, b.host.said)
		}
	}
}

func TestFilesAreRestoredOnlyWhenGoRaisedThem(t *testing.T) {
	for _, c := range []struct {
		soft, hard uint64
		now        unix.Rlimit
		want       uint64 // 0: left alone
	}{
		{1024, 4096, unix.Rlimit{Cur: 4095, Max: 4096}, 1024},
		{1024, 4096, unix.Rlimit{Cur: 4096, Max: 4096}, 0},
		{1024, 4096, unix.Rlimit{Cur: 2048, Max: 4096}, 0},
		{1024, 4096, unix.Rlimit{Cur: 4096, Max: 8192}, 0},
		{4095, 4096, unix.Rlimit{Cur: 4095, Max: 4096}, 0},
		{0, 0, unix.Rlimit{Cur: 4096, Max: 4096}, 0},
	} {
		var set uint64
		restoreFiles(c.soft, c.hard, func() (unix.Rlimit, error) { return c.now, nil }, func(l unix.Rlimit) error { set = l.Cur; return nil })
		if set != c.want {
			t.Errorf("%+v: set to %d", c, set)
		}
	}
}

func TestTheRealHost(t *testing.T) {
	var h host = cHost{}
	if v, ok := h.Getenv("PATH"); ok && v != os.Getenv("PATH") {
		t.Error("PATH differs")
	}
	if _, ok := h.Getenv("WEFT_NO_SUCH_NAME"); ok {
		t.Error("a name that is not there")
	}
	t.Setenv("WEFT_PLUGIN_TEST", "x=y") // cgo's os.Setenv reaches libc
	if v, _ := h.Getenv("WEFT_PLUGIN_TEST"); v != "x=y" {
		t.Errorf("got %q", v)
	}
	found := false
	for _, e := range h.Environ() {
		found = found || e == "WEFT_PLUGIN_TEST=x=y"
	}
	if !found {
		t.Error("environ lacks it")
	}
	if m := h.Module(1); m != (module{}) {
		t.Errorf("address 1 is in %v", m)
	}
}
