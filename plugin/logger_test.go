package plugin

import (
	"errors"
	"testing"
	"testing/synctest"

	"weft/abi"
	"weft/internal/report"
)

func TestLevelsFlagsAndPlace(t *testing.T) {
	h := &fakeHost{env: map[string]string{"NCCL_DEBUG": "INFO"}, modules: map[uintptr]module{nccl: {1, "libnccl.so"}}}
	for _, c := range []struct {
		table     int
		init, env uint64
	}{{2, 0x11, 0x81}, {3, 0x11, 0x81}, {4, 0x11, 0x80}, {abi.NetNewest, 0x11, 0x80}} {
		v := &voices{host: h}
		l := logger{v, v.add(nccl, c.table)}
		h.forget()
		l.Trace(report.Net, "not shown")
		v.trace.Store(true)
		l.Warn("a %s\nb", "%d")
		l.Info(report.Init, "i")
		l.Info(report.Net, "n")
		l.Info(report.Env, "e")
		l.Trace(report.Net, "t")
		report.Say(l, report.Errorf(report.Peer, "x", "y"))
		want := []struct {
			level int32
			flags uint64
			text  string
		}{
			{2, ^uint64(0), "NET/weft : a %d b"}, {3, c.init, "NET/weft : i"}, {3, 0x10, "NET/weft : n"},
			{3, c.env, "NET/weft : e"}, {5, 0x10, "NET/weft : t"}, {2, ^uint64(0), "NET/weft : x: y"},
		}
		if len(h.said) != len(want) {
			t.Fatalf("said %v", h.said)
		}
		for i, w := range want {
			s := h.said[i]
			if s.logger != nccl || s.level != w.level || s.flags != w.flags || s.text != w.text ||
				s.file != "logger_test.go" || s.line == 0 {
				t.Errorf("v%d: %v, want %v", c.table, s, w)
			}
		}
	}
}

func TestNoLogFunctionIsTolerated(t *testing.T) {
	h := &fakeHost{}
	v := &voices{host: h}
	logger{v, v.add(0, abi.NetNewest)}.Warn("lost")
	logger{voices: v}.Warn("lost")
	if len(h.said) != 0 {
		t.Errorf("said %v", h.said)
	}
}

func TestAVoiceEndsWithItsModule(t *testing.T) {
	h := &fakeHost{modules: map[uintptr]module{nccl: {1, "libnccl.so"}, other: {2, "other.so"}}}
	v := &voices{host: h}
	first, second, closure := v.add(nccl, 8), v.add(other, abi.NetNewest), v.add(0x1234, abi.NetNewest)
	who := func(l logger) uintptr {
		h.forget()
		l.Warn("x")
		if len(h.said) != 1 {
			return 0
		}
		return h.said[0].logger
	}
	if who(logger{v, first}) != nccl || who(logger{v, second}) != other || who(logger{voices: v}) != nccl {
		t.Error("a voice does not speak for itself")
	}
	delete(h.modules, nccl)
	if who(logger{v, first}) != other || who(logger{voices: v}) != other {
		t.Error("the voice of an unloaded module was called, or nobody spoke for it")
	}
	h.modules[nccl] = module{9, "something-else.so"}
	if who(logger{v, first}) != other {
		t.Error("a stranger at the same address was called")
	}
	v.drop(second)
	if who(logger{v, first}) != 0x1234 || who(logger{v, closure}) != 0x1234 {
		t.Error("a function outside all modules is trusted")
	}
}

func TestSecondInitKeepsTheFirstLoggerWhileItLives(t *testing.T) {
	b := newBench(t, nil)
	b.mustInit(8)
	b.init(8, other)
	log := b.engine.contexts[0].options.Log
	b.host.forget()
	log.Warn("one")
	delete(b.host.modules, nccl)
	b.init(8, other)
	log.Warn("two")
	if len(b.host.said) != 2 || b.host.said[0].logger != nccl || b.host.said[1].logger != other {
		t.Errorf("said %v", b.host.said)
	}
}

func TestTwoCopiesOfNCCLHearTheirOwn(t *testing.T) {
	b := newBench(t, nil)
	_, one := b.init(abi.NetNewest, nccl)
	_, two := b.init(abi.NetNewest, other)
	b.host.forget()
	b.engine.contexts[0].options.Log.Warn("a")
	b.engine.contexts[1].options.Log.Warn("b")
	if len(b.host.said) != 2 || b.host.said[0].logger != nccl || b.host.said[1].logger != other {
		t.Errorf("said %v (contexts %#x %#x)", b.host.said, one, two)
	}
}

// busyHost is one whose log function does something before it returns.
type busyHost struct {
	*fakeHost
	inside func()
}

func (h *busyHost) Log(logger uintptr, level int32, flags uint64, file string, line int, text string) {
	h.fakeHost.Log(logger, level, flags, file, line, text)
	h.inside()
}

// After a voice is dropped its module may be unloaded: nobody is inside its function, and nobody calls it again.
func TestADroppedVoiceIsSilent(t *testing.T) {
	for _, own := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			leave, dropped := make(chan struct{}), make(chan struct{})
			h := &busyHost{&fakeHost{modules: map[uintptr]module{nccl: {1, "libnccl.so"}}}, func() { <-leave }}
			v := &voices{host: h}
			w := v.add(nccl, abi.NetNewest)
			l := logger{voices: v}
			if own {
				l.own = w
			}
			go l.Warn("a line that takes long")
			synctest.Wait()
			go func() {
				v.drop(w)
				close(dropped)
			}()
			synctest.Wait()
			select {
			case <-dropped:
				t.Errorf("own %v: dropped while a thread is inside the function", own)
			default:
			}
			close(leave)
			<-dropped
			if l.Warn("gone"); len(h.said) != 1 {
				t.Errorf("own %v: a dropped function was called: %v", own, h.said)
			}
			v.add(other, abi.NetNewest)
			if l.Warn("heir"); len(h.said) != 2 || h.said[1].logger != other {
				t.Errorf("own %v: nobody speaks for it: %v", own, h.said)
			}
		})
	}
}

// A function that never returns does not keep a voice from being dropped, nor does one that has the host drop it.
func TestAStuckFunctionDoesNotKeepItsVoice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		leave := make(chan struct{})
		h := &busyHost{&fakeHost{}, func() { <-leave }}
		v := &voices{host: h}
		w := v.add(nccl, abi.NetNewest)
		go logger{v, w}.Warn("stuck")
		synctest.Wait()
		v.drop(w)
		close(leave)

		w = v.add(nccl, abi.NetNewest)
		v.add(other, abi.NetNewest)
		depth := 0
		h.inside = func() {
			if depth++; depth == 1 {
				logger{v, w}.Warn("from within")
				v.drop(w)
				logger{v, w}.Warn("through the other")
			}
		}
		logger{v, w}.Warn("finalize, from within")
		if n := len(h.said); depth != 3 || h.said[n-2].logger != nccl || h.said[n-1].logger != other {
			t.Errorf("%d calls: %v", depth, h.said)
		}
	})
}

func TestAnErrorOfFinalizeIsHeard(t *testing.T) {
	b := newBench(t, nil)
	ctx := b.mustInit(abi.NetNewest)
	b.host.forget()
	b.engine.contexts[0].err = errors.New("still open")
	if code := b.done("finalize", b.Finalize(&abi.NetFinalizeArgs{Ctx: ctx})); code != resultInternalError {
		t.Errorf("finalize returned %d", code)
	}
	if len(b.host.said) != 1 || b.host.said[0].logger != nccl || len(b.host.lines(levelWarn, "finalize", "still open")) != 1 {
		t.Errorf("said %v", b.host.said)
	}
}
