package ibv_test

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"weft/internal/fakeibv"
	"weft/internal/simverbs"
	"weft/transport/verbs/ibv"
)

func TestNoLibrary(t *testing.T) {
	t.Setenv("LD_LIBRARY_PATH", "")
	lib, err := ibv.Load("libweft-that-is-not-there.so")
	if lib != nil || err != ibv.ErrMissing {
		t.Errorf("%v, %v", lib, err)
	}
	text := filepath.Join(t.TempDir(), "libibverbs.so")
	fakeibv.Write(t, "no library", text)
	if _, err := ibv.Load(text); err == nil || err == ibv.ErrMissing {
		t.Errorf("a text file: %v", err)
	}
	if _, err := ibv.Load("libc.so.6"); err == nil || !strings.Contains(err.Error(), "ibv_get_device_list") {
		t.Errorf("libc: %v", err)
	}
}

// libmlx5 works on the objects of the libibverbs that the loader gave it, which
// need not be the one in use: then it must not be called.
func TestLibmlx5WithAnotherLibibverbs(t *testing.T) {
	first, err := ibv.Load("libibverbs.so.1")
	if err != nil {
		t.Skipf("this machine has no libibverbs: %v", err)
	}
	if err := ibv.LoadMLX5(first, "libmlx5.so.1"); err != nil && !strings.Contains(err.Error(), "No such file") {
		t.Errorf("the machine's own: %v", err)
	}
	dist, err := simverbs.Dist()
	if err != nil {
		t.Fatal(err)
	}
	second, err := ibv.Load(filepath.Join(dist, "libibverbs.so.1"))
	if err != nil {
		t.Fatal(err)
	}
	if err := ibv.LoadMLX5(second, filepath.Join(dist, "libmlx5.so.1")); err == nil || !strings.Contains(err.Error(), "another libibverbs") {
		t.Error(err)
	}
	if errno := second.MLX5Supported(0); errno != syscall.ENOSYS {
		t.Errorf("after a refusal libmlx5 returned %v", errno)
	}
}
