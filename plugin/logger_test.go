package plugin

import (
	"testing"

	"weft/transport/rdma"
)

func TestLevelsFlagsAndPlace(t *testing.T) {
	h := &fakeHost{modules: map[uintptr]module{nccl: {1, "libnccl.so"}}}
	for _, c := range []struct {
		table     int
		init, env uint64
	}{{2, 0x11, 0x81}, {3, 0x11, 0x81}, {4, 0x11, 0x80}, {12, 0x11, 0x80}} {
		v := &voices{host: h}
		l := logger{v, v.add(nccl, c.table)}
		h.forget()
		l.Trace(rdma.Net, "not shown")
		v.trace.Store(true)
		l.Warn("a %s\nb", "%d")
		l.Info(rdma.Init, "i")
		l.Info(rdma.Net, "n")
		l.Info(rdma.Env, "e")
		l.Trace(rdma.Net, "t")
		rdma.Say(l, rdma.Errorf(rdma.Peer, "x", "y"))
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
				s.function != "plugin.TestLevelsFlagsAndPlace" || s.line == 0 {
				t.Errorf("v%d: %v, want %v", c.table, s, w)
			}
		}
	}
}

func TestNoLogFunctionIsTolerated(t *testing.T) {
	h := &fakeHost{}
	v := &voices{host: h}
	logger{v, v.add(0, 12)}.Warn("lost")
	logger{voices: v}.Warn("lost")
	if len(h.said) != 0 {
		t.Errorf("said %v", h.said)
	}
}

func TestAVoiceEndsWithItsModule(t *testing.T) {
	h := &fakeHost{modules: map[uintptr]module{nccl: {1, "libnccl.so"}, other: {2, "other.so"}}}
	v := &voices{host: h}
	first, second, closure := v.add(nccl, 8), v.add(other, 12), v.add(0x1234, 12)
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
	_, one := b.init(12, nccl)
	_, two := b.init(12, other)
	b.host.forget()
	b.engine.contexts[0].options.Log.Warn("a")
	b.engine.contexts[1].options.Log.Warn("b")
	if len(b.host.said) != 2 || b.host.said[0].logger != nccl || b.host.said[1].logger != other {
		t.Errorf("said %v (contexts %#x %#x)", b.host.said, one, two)
	}
}
