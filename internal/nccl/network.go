package nccl

import (
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"

	"weft/internal/build"
	"weft/internal/simverbs"
)

// Network is what the ranks have between them: weft over TCP, or over a world of simulated RDMA devices; or NCCL's own
// networks over the same.
type Network struct {
	Name  string
	World *simverbs.World
	env   []string
	via   [2]string // by what name NCCL has it, and what that says it goes over: over.go
}

// Stop stops a process of a rank, as SIGSTOP does, in a way that keeps no other from simulated devices.
func (n Network) Stop(pid int) error {
	if n.World != nil {
		return n.World.Stop(pid)
	}
	return syscall.Kill(pid, syscall.SIGSTOP)
}

var worlds atomic.Int32

// TCP is weft over loopback.
func TCP(Release) (Network, error) {
	lib, err := library()
	return Network{Name: "TCP", env: []string{"LD_LIBRARY_PATH=" + lib, "NCCL_IB_DISABLE=1"}, via: [2]string{"weft", "tcp"}}, err
}

// Socket is NCCL's own beside that.
func Socket(Release) (Network, error) {
	env := []string{"NCCL_NET=Socket", "NCCL_NET_PLUGIN=none", "NCCL_IB_DISABLE=1"}
	return Network{Name: "Socket", env: env, via: [2]string{"Socket", "lo"}}, nil
}

// RDMA is weft over devices that all ranks see: sim0, sim1 and so on, ports of one card at a PCI address.
func RDMA(devices ...simverbs.Device) (Network, error) {
	lib, err := library()
	if err != nil {
		return Network{}, err
	}
	dist, err := simverbs.Dist()
	if err != nil {
		return Network{}, err
	}
	w := &simverbs.World{Name: fmt.Sprintf("nccl-%d-%d", os.Getpid(), worlds.Add(1))}
	for i, d := range devices {
		d.Name = fmt.Sprintf("sim%d", i)
		if d.GIDs == nil {
			d.GIDs = []string{fmt.Sprintf("10.%d.0.1/24", i+1)}
		}
		d.PCI = fmt.Sprintf("0000:81:00.%d", i)
		w.Devices = append(w.Devices, d)
	}
	env, err := w.Env(lib+string(filepath.ListSeparator)+dist, "")
	return Network{Name: "RDMA", World: w, env: env, via: [2]string{"weft", "sim"}}, err
}

// IB is NCCL's own beside that, over the devices of its world. Who ends the world does so for both.
func IB(w *simverbs.World) (Network, error) {
	dist, err := simverbs.Dist()
	if err != nil {
		return Network{}, err
	}
	env, err := w.Env(dist, "")
	env = append(env, "NCCL_NET=IB", "NCCL_NET_PLUGIN=none", "NCCL_GIN_TYPE=2") // unasked, 2.28.9 crashes where no card is NVIDIA's
	return Network{Name: "IB", World: w, env: env, via: [2]string{"IB", "sim"}}, err
}

// library is the folder of the plugin.
func library() (string, error) {
	path, err := build.Library()
	if err == nil && path == build.Self {
		err = fmt.Errorf("%s has the library inside a host: NCCL cannot load it", build.DistEnv)
	}
	return filepath.Dir(path), err
}

//go:embed topo-two-ports.xml
var twoPorts string

//go:embed topo-rails.xml
var rails string

// TwoPorts writes NCCL's topology file for two ports of one card, which NCCL then makes one device of.
func TwoPorts(dir string) (env string, err error) { return topology(dir, twoPorts) }

// Rails writes one for two GPUs, each with devices beside it: sim0 and lo, and sim1.
func Rails(dir string) (env string, err error) { return topology(dir, rails) }

func topology(dir, text string) (env string, err error) {
	path := filepath.Join(dir, "topo.xml")
	return "NCCL_TOPO_FILE=" + path, os.WriteFile(path, []byte(text), 0o644)
}

// join puts lists of KEY=VALUE together; a later value of a key is the one that holds, and paths of libraries are joined.
func join(lists ...[]string) []string {
	var out []string
	at := map[string]int{}
	for _, list := range lists {
		for _, kv := range list {
			key, value, _ := strings.Cut(kv, "=")
			i, known := at[key]
			switch {
			case !known:
				at[key] = len(out)
				out = append(out, kv)
			case key == "LD_LIBRARY_PATH":
				out[i] += string(filepath.ListSeparator) + value
			default:
				out[i] = kv
			}
		}
	}
	return out
}
