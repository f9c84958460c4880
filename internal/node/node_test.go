package node

import (
	"os"
	"path/filepath"
	"testing"
)

func TestPCIFunction(t *testing.T) {
	sys := t.TempDir()
	sys, err := filepath.EvalSymlinks(sys)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, target, want string }{
		{"card", "devices/pci0000:80/0000:82:00.1", "devices/pci0000:80/0000:82:00.1"},
		{"virtio", "devices/pci0000:00/0000:00:05.0/virtio2", "devices/pci0000:00/0000:00:05.0"},
		{"long domain", "devices/10000:e1:00.0", "devices/10000:e1:00.0"},
		{"bridge", "devices/virtual/net/br0", ""},
		{"no function", "devices/0000:82:00", ""},
		{"no hex", "devices/0000:8g:00.0", ""},
	} {
		if err := os.MkdirAll(filepath.Join(sys, c.target), 0o755); err != nil {
			t.Fatal(err)
		}
		link := filepath.Join(sys, c.name)
		if err := os.Symlink(c.target, link); err != nil {
			t.Fatal(err)
		}
		want := c.want
		if want != "" {
			want = filepath.Join(sys, want)
		}
		if got := PCIFunction(link); got != want {
			t.Errorf("%s: %q, want %q", c.name, got, want)
		}
	}
	if got := PCIFunction(filepath.Join(sys, "nothing")); got != "" {
		t.Errorf("a link that is not there: %q", got)
	}
}
