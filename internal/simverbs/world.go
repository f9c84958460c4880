// Package simverbs starts programs on the simulated libibverbs of tools/simverbs:
// it describes a world of devices, gives processes the environment to live in it,
// and injects faults while they run.
package simverbs

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Device is one simulated NIC; zero values are simverbs' defaults. Rate is what
// its links carry in GB/s (0: whatever the machine does), Speed what it says it
// carries in Mb/s.
type Device struct {
	Name       string   `json:"name"`
	Node       string   `json:"node,omitempty"`
	PCI        string   `json:"pci,omitempty"`
	Link       string   `json:"link,omitempty"` // ethernet or infiniband
	GIDs       []string `json:"gids,omitempty"`
	Ports      []Port   `json:"ports,omitempty"`
	Rate       float64  `json:"rate,omitempty"`
	DelayUs    float64  `json:"delay_us,omitempty"`
	Speed      int      `json:"speed,omitempty"`
	MTU        int      `json:"mtu,omitempty"`
	MaxInline  *int     `json:"max_inline,omitempty"`
	MaxQP      int      `json:"max_qp,omitempty"`
	MaxQPWR    int      `json:"max_qp_wr,omitempty"`
	MaxCQE     int      `json:"max_cqe,omitempty"`
	DMABuf     *bool    `json:"dmabuf,omitempty"`
	MLX5       bool     `json:"mlx5,omitempty"`
	OOO        int      `json:"ooo,omitempty"`
	DataDirect string   `json:"data_direct,omitempty"`
	PKeys      []uint16 `json:"pkeys,omitempty"`
	ECEVendor  uint32   `json:"ece_vendor,omitempty"`
	ECEOptions uint32   `json:"ece_options,omitempty"`
	DownFails  *bool    `json:"down_fails,omitempty"`
}

// Port is one port of a device that has several.
type Port struct {
	GIDs    []string `json:"gids,omitempty"`
	Rate    float64  `json:"rate,omitempty"`
	DelayUs float64  `json:"delay_us,omitempty"`
	Down    bool     `json:"down,omitempty"`
}

// World is what all its processes see. Processes with equal worlds share one.
type World struct {
	Name          string   `json:"name"`
	Dir           string   `json:"dir,omitempty"` // default /dev/shm
	Seed          uint64   `json:"seed,omitempty"`
	Share         *bool    `json:"share,omitempty"`
	Retry7Forever bool     `json:"retry7_forever,omitempty"`
	Routes        []string `json:"routes,omitempty"` // "10.1.0.0/16 10.2.0.0/16": routers join these
	Devices       []Device `json:"devices"`
}

// State is the folder of the world's arena, control sockets and sysfs files.
func (w World) State() string {
	dir := w.Dir
	if dir == "" {
		dir = "/dev/shm"
	}
	return filepath.Join(dir, fmt.Sprintf("simverbs-%d-%s", os.Geteuid(), w.Name))
}

// Env is what a process needs to find the library (in dist) and this world; node
// may be empty. Faults hold from the start.
func (w World) Env(dist, node string, faults ...string) ([]string, error) {
	if w.Name == "" {
		return nil, errors.New("simverbs: a world needs a name of its own: two tests must not meet")
	}
	text, err := json.Marshal(w)
	if err != nil {
		return nil, fmt.Errorf("simverbs: world %s: %w", w.Name, err)
	}
	env := []string{"WEFT_SIMVERBS=" + string(text), "WEFT_SIMVERBS_NODE=" + node, "LD_LIBRARY_PATH=" + dist}
	if len(faults) > 0 {
		env = append(env, "WEFT_SIMVERBS_FAULTS="+strings.Join(faults, ";"))
	}
	return env, nil
}

// Control sends lines to a process of the world (faults of links and devices hold
// for all of its processes, "fail" lines for that one).
func (w World) Control(pid int, lines ...string) error {
	_, err := w.ask(pid, lines...)
	return err
}

// Stop stops a process of the world, as SIGSTOP does, but not while it holds a
// lock that all of the world share. Another process, which must be there, does it.
func (w World) Stop(pid int) error {
	all, err := w.Processes()
	if err == nil {
		err = errors.New("the world has no other process")
	}
	for _, other := range all {
		if other != pid {
			if err = w.Control(other, fmt.Sprint("stop ", pid)); err == nil {
				return nil
			}
		}
	}
	return fmt.Errorf("simverbs: stop process %d of world %s: %w", pid, w.Name, err)
}

// Processes are those that have opened the library, some of which may have been
// killed since.
func (w World) Processes() (pids []int, err error) {
	sockets, err := os.ReadDir(filepath.Join(w.State(), "ctl"))
	for _, s := range sockets {
		if pid, err := strconv.Atoi(s.Name()); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids, err
}

// Objects is what a process has of a world, and how many of its calls were made to fail so far.
type Objects struct{ MRs, CQs, QPs, Failed int }

// Count asks a process what it has.
func (w World) Count(pid int) (o Objects, err error) {
	text, err := w.ask(pid, "count")
	if err == nil {
		if _, err = fmt.Sscanf(text, "ok mrs %d cqs %d qps %d failed %d", &o.MRs, &o.CQs, &o.QPs, &o.Failed); err != nil {
			err = fmt.Errorf("simverbs: count: %q: %w", text, err)
		}
	}
	return o, err
}

// QP is a queue pair of a process: its number and its peer's, once it is connected, its state as ibv_qp_state has it, its
// receive CQ, how many requests were posted to it, and of how many the completion was polled.
type QP struct{ Number, Peer, State, CQ, Posted, Done uint32 }

// QPs lists those of a process on a device.
func (w World) QPs(pid int, device string) (all []QP, err error) {
	text, err := w.ask(pid, "list "+device)
	if err != nil {
		return nil, err
	}
	for _, f := range strings.Fields(text)[1:] {
		var q QP
		if _, err := fmt.Sscanf(f, "%d-%d/%d/%d/%d/%d", &q.Number, &q.Peer, &q.State, &q.CQ, &q.Posted, &q.Done); err != nil {
			return nil, fmt.Errorf("simverbs: list %s: %q: %w", device, text, err)
		}
		all = append(all, q)
	}
	return all, nil
}

// ask returns the last line's answer.
func (w World) ask(pid int, lines ...string) (answer string, err error) {
	path := filepath.Join(w.State(), "ctl", fmt.Sprint(pid))
	conn, err := net.DialTimeout("unix", path, 5*time.Second)
	if err != nil {
		return "", fmt.Errorf("simverbs: control process %d: %w (has it opened libibverbs?)", pid, err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		return "", fmt.Errorf("simverbs: control process %d: %w", pid, err)
	}
	answers := bufio.NewScanner(conn)
	for _, line := range lines {
		if _, err := fmt.Fprintln(conn, line); err != nil {
			return "", fmt.Errorf("simverbs: control process %d: %q: %w", pid, line, err)
		}
		if !answers.Scan() {
			return "", fmt.Errorf("simverbs: control process %d: no answer to %q: %v", pid, line, answers.Err())
		}
		if answer = answers.Text(); !strings.HasPrefix(answer, "ok") {
			return "", fmt.Errorf("simverbs: %q: %s", line, answer)
		}
	}
	return answer, nil
}

// Remove deletes the world's files, once its processes have ended.
func (w World) Remove() error { return os.RemoveAll(w.State()) }
