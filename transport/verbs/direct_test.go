package verbs

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"weft/internal/fakeibv"
	"weft/internal/knob"
	"weft/internal/report"
	"weft/internal/simverbs"
	"weft/transport/memory"
	"weft/transport/rdma"
	"weft/transport/verbs/ibv"
	"weft/transport/verbs/machine"
	"weft/transport/verbs/mr"
)

const directPath = "/devices/pci0000:85/0000:85:00.0"

// directCard is a card of libmlx5's with a data-direct function; its table may be changed before it is opened.
func directCard(t *testing.T) (*ibv.Calls, *machine.Machine, *fakeibv.Lib) {
	h := fakeibv.Host(t, fakeibv.Eth(1, true, "10.0.0.1/24"))
	f := fakeibv.New(t, fakeibv.At(t, h, fakeibv.RoCE("mlx5_0", "10.0.0.1", 1), "0000:3b:00.0"))
	if err := os.MkdirAll(h.Sys(directPath), 0o777); err != nil {
		t.Fatal(err)
	}
	c := f.Table()
	plain, register := c.QueryDevice, c.RegDMABufMR
	c.QueryDevice = func(context ibv.Object) (ibv.DeviceAttr, syscall.Errno) {
		a, errno := plain(context)
		a.Vendor = 0x02c9
		return a, errno
	}
	c.MLX5Supported = func(ibv.Object) syscall.Errno { return 0 }
	c.MLX5DirectPath = func(ibv.Object) (string, syscall.Errno) { return directPath, 0 }
	c.MLX5RegDirect = register
	return c, h, f
}

func TestDataDirectDevices(t *testing.T) {
	const plain, direct = "mlx5_0 0000:3b:00.0 port 1 flush false", "mlx5_0_dma 0000:85:00.0 port 1 flush true"
	for _, c := range []struct {
		name   string
		knob   string
		change func(c *ibv.Calls)
		want   []string
		says   string
	}{
		{"by default", "", nil, []string{direct}, "PCI 0000:3b:00.0 and 0000:85:00.0 (data-direct)"},
		{"by its name", "1", nil, []string{direct}, "device 0 is mlx5_0_dma, mlx5_0 port 1: RoCE"},
		{"that only", "1", nil, []string{direct}, "DMA-BUFs can be registered on the data-direct path 0000:85:00.0"},
		{"both", "2", nil, []string{plain, direct}, "[0]mlx5_0:1/RoCE [1]mlx5_0:1_dma/RoCE"},
		{"off", "0", func(c *ibv.Calls) {
			c.MLX5Supported = func(ibv.Object) syscall.Errno { t.Error("libmlx5 is asked"); return 0 }
		}, []string{plain}, ""},
		{"another maker", "", func(c *ibv.Calls) {
			c.QueryDevice = func(ibv.Object) (ibv.DeviceAttr, syscall.Errno) { return ibv.DeviceAttr{Ports: 1, Vendor: 0x14e4}, 0 }
			c.MLX5Supported = func(ibv.Object) syscall.Errno { t.Error("libmlx5 is asked"); return 0 }
		}, []string{plain}, ""},
		{"another library's", "", func(c *ibv.Calls) { c.MLX5Supported = func(ibv.Object) syscall.Errno { return syscall.EOPNOTSUPP } }, []string{plain}, ""},
		{"an old libmlx5", "", func(c *ibv.Calls) {
			c.MLX5DirectPath = func(ibv.Object) (string, syscall.Errno) { return "", syscall.ENOSYS }
		}, []string{plain}, ""},
		{"no such function", "", func(c *ibv.Calls) {
			c.MLX5DirectPath = func(ibv.Object) (string, syscall.Errno) { return "", syscall.ENODEV }
		}, []string{plain}, ""},
		{"an error", "", func(c *ibv.Calls) {
			c.MLX5DirectPath = func(ibv.Object) (string, syscall.Errno) { return "", syscall.EIO }
		},
			[]string{plain}, "mlx5dv_get_data_direct_sysfs_path on mlx5_0: the card is used without a data-direct path: input/output error (EIO)"},
		{"not in sysfs", "", func(c *ibv.Calls) {
			c.MLX5DirectPath = func(ibv.Object) (string, syscall.Errno) { return "/devices/none", 0 }
		}, []string{plain}, "mlx5_0 has a data-direct path that is not in sysfs"},
		{"a kernel without", "2", func(c *ibv.Calls) {
			c.MLX5RegDirect = func(ibv.Object, uint64, uint64, uintptr, int, ibv.Access) (ibv.MemoryKeys, syscall.Errno) {
				return ibv.MemoryKeys{}, syscall.EOPNOTSUPP
			}
		}, []string{plain}, "DMA-BUFs can be registered, no data-direct path: mlx5dv_reg_dmabuf_mr returned operation not supported"},
	} {
		lib, host, f := directCard(t)
		if c.change != nil {
			c.change(lib)
		}
		env, log := map[string]string{}, new(report.Recorder)
		if c.knob != "" {
			env["NCCL_IB_DATA_DIRECT"] = c.knob
		}
		p, err := Open(Config{Knobs: knob.Parse(env), Log: log, host: host, lib: lib})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, d := range p.Devices() {
			got = append(got, fmt.Sprintf("%s %s port %d flush %v", d.Name, filepath.Base(d.PCIPath), d.Port, d.Flush))
			if !d.Pointers.Has(rdma.MemHost|rdma.MemDMABUF) || d.NIC != "mlx5_0" || len(d.GIDs()) == 0 {
				t.Errorf("%s: %v %s %v", c.name, d.Pointers, d.NIC, d.GIDs())
			}
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s: %s", c.name, d)
		}
		all := p.Devices()
		if all[0].Observe(ibv.EventPortErr); all[len(all)-1].Down() == "" {
			t.Errorf("%s: the link is down for one view only", c.name)
		}
		if !strings.Contains(strings.Join(log.Lines(), "\n"), c.says) {
			t.Errorf("%s: %q", c.name, log.Lines())
		}
		p.Close()
		if left := f.Left(); left != nil {
			t.Errorf("%s: left %v", c.name, left)
		}
	}
}

func seeDirect(t *testing.T, env map[string]string) string {
	lib, host, _ := directCard(t)
	p, err := Open(Config{Knobs: knob.Parse(env), host: host, lib: lib})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	return p.Devices()[0].Name
}

// DMA-BUFs of a data-direct device take that path; where it refuses one, the
// card's own. Other memory has nothing to do with it.
func TestDataDirectRegistration(t *testing.T) {
	lib, host, f := directCard(t)
	refuse, direct := false, 0
	plain := lib.MLX5RegDirect
	lib.MLX5RegDirect = func(pd ibv.Object, offset, length uint64, iova uintptr, fd int, access ibv.Access) (ibv.MemoryKeys, syscall.Errno) {
		if direct++; refuse && fd >= 0 {
			return ibv.MemoryKeys{}, syscall.EINVAL
		}
		return plain(pd, offset, length, iova, fd, access)
	}
	log := new(report.Recorder)
	p, err := Open(Config{Knobs: knob.Parse(map[string]string{"NCCL_IB_DATA_DIRECT": "2"}), Log: log, host: host, lib: lib})
	if err != nil {
		t.Fatal(err)
	}
	fd := fakeibv.Memfd(t, 0)
	defer unix.Close(fd)
	var pds [2]*mr.PD
	for i, d := range p.Devices() {
		if pds[i], err = d.AcquirePD(); err != nil {
			t.Fatal(err)
		}
	}
	if pds[0] == pds[1] {
		t.Error("both views share registrations")
	}
	b, err := memory.NewDMABuf(0x20000, page, 0, fd, rdma.MemCUDA)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	host0 := hostMemory(t, 0x20000, page)
	for _, c := range []struct {
		pd     *mr.PD
		b      *memory.Buffer
		refuse bool
		how    string
		calls  int
	}{
		{pds[0], b, false, "DMA-BUF, relaxed ordering", 0},
		{pds[1], b, false, "data-direct DMA-BUF, relaxed ordering", 1},
		{pds[1], host0, false, "plain, relaxed ordering", 0},
		{pds[1], b, true, "DMA-BUF, relaxed ordering", 2},
		{pds[1], b, true, "DMA-BUF, relaxed ordering", 2},
	} {
		refuse, direct = c.refuse, 0
		r, err := c.pd.Register(c.b, ibv.AccessData)
		if err != nil {
			t.Fatal(err)
		}
		if r.How != c.how || direct != c.calls {
			t.Errorf("%s with %d calls, want %s with %d", r.How, direct, c.how, c.calls)
		}
		if err := r.Release(); err != nil {
			t.Error(err)
		}
	}
	if log.Count("INFO NET mlx5dv_reg_dmabuf_mr on mlx5_0", "registered on the card's own", "EINVAL") != 1 {
		t.Errorf("%q", log.Lines())
	}
	if err := errors.Join(pds[0].Release(), pds[1].Release()); err != nil {
		t.Error(err)
	}
	p.Close()
	if left := f.Left(); left != nil {
		t.Errorf("left %v", left)
	}
}

// Registration on the data-direct path through a loaded libmlx5, in a process of its own: in this one a
// libibverbs of the machine may be loaded, and libmlx5 would work with that.
func TestSimDataDirect(t *testing.T) {
	dist, err := simverbs.Dist()
	if err != nil {
		t.Fatal(err)
	}
	lib := filepath.Join(dist, "libibverbs.so.1")
	if os.Getenv("WEFT_TEST_DIRECT") != "" {
		useDataDirect(t, lib)
		return
	}
	w := simverbs.World{Name: fmt.Sprint("direct-", os.Getpid()), Devices: []simverbs.Device{
		{Name: "sim", PCI: "0000:84:00.0", GIDs: []string{"10.9.4.1/24"}, MLX5: true, DataDirect: directPath},
	}}
	defer w.Remove()
	env, err := w.Env(dist, "")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestSimDataDirect$", "-test.v")
	cmd.Env = append(append(os.Environ(), env...), "WEFT_TEST_DIRECT=1", "WEFT_SIMVERBS_CTL=") // that stays this process's
	if text, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(text), "registered 4 buffers") {
		t.Errorf("%v\n%s", err, text)
	}
}

func useDataDirect(t *testing.T, lib string) {
	n := 0
	for value, want := range map[string]string{"0": "[sim]", "1": "[sim_dma]", "2": "[sim sim_dma]"} {
		log := new(report.Recorder)
		p, err := Open(Config{Knobs: knob.Parse(map[string]string{"NCCL_IBVERBS_LIB": lib, "NCCL_IB_DATA_DIRECT": value}), Log: log})
		if err != nil {
			t.Fatal(err, log.Lines())
		}
		var names []string
		for _, d := range p.Devices() {
			names = append(names, d.Name)
			pd, err := d.AcquirePD()
			if err != nil {
				t.Fatal(err)
			}
			fd := fakeibv.Memfd(t, 1<<16)
			b, err := memory.NewDMABuf(0x20000, 1<<15, 1<<15, fd, rdma.MemCUDA)
			if err != nil {
				t.Fatal(err)
			}
			unix.Close(fd)
			r, err := pd.Register(b, ibv.AccessData)
			if err != nil {
				t.Fatal(err)
			}
			if direct := strings.HasPrefix(r.How, "data-direct"); direct != d.Flush || direct != strings.HasSuffix(d.PCIPath, directPath) {
				t.Errorf("%s: %s, path %s, flush %v", d.Name, r.How, d.PCIPath, d.Flush)
			}
			if err := errors.Join(r.Release(), pd.Release()); err != nil {
				t.Error(err)
			}
			b.Close()
			n++
		}
		if fmt.Sprint(names) != want {
			t.Errorf("%s: %v, want %s; %q", value, names, want, log.Lines())
		}
		p.Close()
	}
	t.Logf("registered %d buffers", n)
}
