package tcp

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weft/internal/knob"
)

func socket(t *testing.T, family int) int {
	t.Helper()
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Skipf("no socket of family %d: %v", family, err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	return fd
}

func read(t *testing.T, fd, level, opt int) int {
	t.Helper()
	n, err := unix.GetsockoptInt(fd, level, opt)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func buffers(t *testing.T, fd int) (rcv, snd int) {
	t.Helper()
	return read(t, fd, unix.SOL_SOCKET, unix.SO_RCVBUF), read(t, fd, unix.SOL_SOCKET, unix.SO_SNDBUF)
}

func TestDataOptions(t *testing.T) {
	env := knob.Parse(map[string]string{"NCCL_SOCKET_TOS_CONFIG": "0x68", "NCCL_SOCKET_RCVBUF": "65536", "NCCL_SOCKET_SNDBUF": "32768"})
	for _, c := range []struct{ family, level, opt int }{
		{unix.AF_INET, unix.IPPROTO_IP, unix.IP_TOS}, {unix.AF_INET6, unix.IPPROTO_IPV6, unix.IPV6_TCLASS},
	} {
		fd := socket(t, c.family)
		if err := DataOptions(env, -1).Apply(fd); err != nil {
			t.Fatal(err)
		}
		f := ReadFacts(fd)
		// The kernel doubles buffer sizes for its own bookkeeping.
		rcv, snd := buffers(t, fd)
		if read(t, fd, c.level, c.opt) != 0x68 || f.TOS != 0x68 || rcv != 131072 || snd != 65536 || f.MSS <= 0 {
			t.Errorf("facts %+v, buffers %d and %d", f, rcv, snd)
		}
		if read(t, fd, unix.IPPROTO_TCP, unix.TCP_NODELAY) == 0 || read(t, fd, unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT) != 0 {
			t.Error("NODELAY missing, or a user timeout on a data socket")
		}
	}
}

func TestDefaultsLeaveTheKernelAlone(t *testing.T) {
	plain, set := socket(t, unix.AF_INET), socket(t, unix.AF_INET)
	if err := DataOptions(knob.Defaults(), -1).Apply(set); err != nil {
		t.Fatal(err)
	}
	if a, b := ReadFacts(plain), ReadFacts(set); a != b {
		t.Errorf("facts %+v, of a plain socket %+v", b, a)
	}
	plainRcv, plainSnd := buffers(t, plain)
	if rcv, snd := buffers(t, set); rcv != plainRcv || snd != plainSnd {
		t.Errorf("buffers %d and %d, of a plain socket %d and %d", rcv, snd, plainRcv, plainSnd)
	}
}

func TestControlOptions(t *testing.T) {
	fd := socket(t, unix.AF_INET)
	if err := ControlOptions(knob.Defaults(), -1).Apply(fd); err != nil {
		t.Fatal(err)
	}
	idle, every, n := read(t, fd, unix.IPPROTO_TCP, unix.TCP_KEEPIDLE), read(t, fd, unix.IPPROTO_TCP, unix.TCP_KEEPINTVL), read(t, fd, unix.IPPROTO_TCP, unix.TCP_KEEPCNT)
	if idle+every*n > 10 || read(t, fd, unix.SOL_SOCKET, unix.SO_KEEPALIVE) == 0 || read(t, fd, unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT) != 10000 {
		t.Errorf("keepalive %d + %d x %d", idle, every, n)
	}
	if err := DeferAccept(fd, 5*time.Second); err != nil || read(t, fd, unix.IPPROTO_TCP, unix.TCP_DEFER_ACCEPT) == 0 {
		t.Errorf("defer accept: %v", err)
	}
	if err := DataOptions(knob.Defaults(), 32).Apply(-1); err == nil {
		t.Error("a closed socket took options")
	}
}

func TestTOS(t *testing.T) {
	for _, c := range []struct {
		env   string
		class int32
		want  int
	}{{"", -1, -1}, {"", 104, 104}, {"0", 104, 0}, {"8", -1, 8}, {"", 256, -1}, {"", -2, -1}, {"300", 4, 4}} {
		if got := TOS(knob.Parse(map[string]string{"NCCL_SOCKET_TOS_CONFIG": c.env}), c.class); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}

// The lowest two bits are ECN's, which TCP keeps for itself.
func TestTOSKeepsECN(t *testing.T) {
	for _, family := range []int{unix.AF_INET, unix.AF_INET6} {
		fd := socket(t, family)
		if err := DataOptions(knob.Defaults(), 0x6b).Apply(fd); err != nil {
			t.Fatal(err)
		}
		if tos := ReadFacts(fd).TOS; tos != 0x68 {
			t.Errorf("family %d: TOS %#x", family, tos)
		}
	}
}

func TestBindToDevice(t *testing.T) {
	d := new(Device)
	d.Name = "lo"
	fd := socket(t, unix.AF_INET)
	bound, err := d.BindToDevice(fd)
	if err != nil {
		t.Fatal(err)
	}
	if name, _ := unix.GetsockoptString(fd, unix.SOL_SOCKET, unix.SO_BINDTODEVICE); (name == "lo") != bound {
		t.Errorf("bound %v, device %q", bound, name)
	}
	d.Name = "none-such0"
	if _, err := d.BindToDevice(socket(t, unix.AF_INET)); err == nil && bound {
		t.Error("bound to an interface that does not exist")
	}
}

func TestSomaxconn(t *testing.T) {
	if n := Somaxconn("/nonexistent"); n != 0 {
		t.Error(n)
	}
}
