package release

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weft/internal/build"
	"weft/internal/ranks"
)

// foreign installs a C plugin of the host's testdata as libnccl-net-it.so.
func foreign(t *testing.T, source string, flags ...string) Options {
	t.Helper()
	bin, err := build.Host()
	if err != nil {
		t.Fatal(err)
	}
	lib, err := build.Plugin("tools/host/testdata/"+source, append(flags, "-O0")...)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, name := range []string{"libnccl-net-it.so", "libnccl-net.so"} {
		if err := os.Symlink(lib, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return Options{Host: bin, Env: []string{"LD_LIBRARY_PATH=" + dir}, NetPlugin: str("it")}
}

// TestOlderTables has releases work with plugins that have only an older table.
func TestOlderTables(t *testing.T) {
	for release, table := range map[string]int{"2.12.12": 4, "2.18.6": 5, "2.20.5": 6, "2.24.3": 8, "2.26.6": 7, "2.28.9": 10, "2.30.7": 6} {
		t.Run(fmt.Sprintf("%s_v%d", release, table), func(t *testing.T) {
			t.Parallel()
			o := foreign(t, "good.c", fmt.Sprintf("-DTABLES=%d", 1<<table))
			world(t, find(t, release), o, 3, func(p *Process, g ranks.Group) error {
				if err := life(p, g); err != nil {
					return err
				}
				if got := p.nets[0].table; got != table {
					return fmt.Errorf("bound v%d, want v%d", got, table)
				}
				return nil
			})
		})
	}
}

// TestRefused shows each reason for which a release does not use a plugin.
func TestRefused(t *testing.T) {
	for _, c := range []struct{ source, releases, says string }{
		{"broken/lib.tables.c", "2.4.8 2.18.6 2.30.7", "no external net plugin"},
		{"broken/lib.load.c", "2.4.8 2.18.6 2.30.7", "no external net plugin"},
		{"broken/net.init.c", "2.30.7", "no external net plugin"},
		{"broken/net.devices.c", "2.30.7", "no external net plugin"},
		{"broken/props.device.c", "2.30.7", "no external net plugin"},
		{"broken/props.name.c", "2.30.7", "share the name"},
		{"broken/props.vdevice.c", "2.30.7", "uninitialised struct"},
		{"broken/props.limits.c", "2.30.7", "not in 1 to 1 TiB"},
		{"good.c", "2.3.99", ""},
	} {
		o := foreign(t, c.source)
		for _, name := range strings.Fields(c.releases) {
			r, err := Find(name)
			if c.says == "" {
				if err == nil {
					t.Errorf("NCCL %s loads no plugins, but was found", name)
				}
				continue
			}
			p, err := Start(r, o)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := p.Init(1); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v with %s: %v, want %q", r, c.source, err, c.says)
			} else if c.says == ErrInternal.Error()[:22] && !errors.Is(err, ErrInternal) {
				t.Errorf("%v with %s: %v", r, c.source, err)
			}
			p.Close()
		}
	}
}

// TestBlockingOrder shows that the emulation of NCCL up to 2.11 finds a plugin whose
// connect waits for accept, and one whose connect returns NULL.
func TestBlockingOrder(t *testing.T) {
	for source, says := range map[string]string{"broken/blocking.order.c": "did not answer", "broken/blocking.comm.c": "no comm"} {
		o := foreign(t, source)
		o.Patience = 4e9
		groups := ranks.Local(1, 20e9)
		p, err := Start(find(t, "2.11.4"), o)
		if err != nil {
			t.Fatal(err)
		}
		c, err := p.Init(1)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Connect(groups[0], 0); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", source, err, says)
		}
		p.Close()
	}
}
