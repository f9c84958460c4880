// Package loads finds out whether a libnccl loads weft: it has that NCCL make a communicator of one rank, in a process of its own,
// and looks at what the process has loaded. Without a GPU NCCL may end before it looks for plugins; then the same process opens the
// names for which that release looks.
package loads

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"weft/internal/doctor/machine"
	"weft/internal/host"
	"weft/internal/release"
)

// Schema names the form of the JSON document.
const Schema = "weft.check/1"

// Options say what is checked.
type Options struct {
	Host string        // the weft-host program
	NCCL string        // the library, as dlopen takes it
	Ours string        // the weft that is expected
	Wait time.Duration // for NCCL's communicator
}

// Report is what was found.
type Report struct {
	Schema  string   `json:"schema"`
	NCCL    string   `json:"nccl"`           // where the library lies
	Release string   `json:"release"`        // as it says itself
	Made    bool     `json:"made"`           // the communicator
	Failed  string   `json:"failed"`         // the call that failed, and why; "" if none
	Loaded  []string `json:"loaded"`         // plugins that the process has loaded
	Table   string   `json:"table"`          // through which weft was first used; "" if it was not
	Looked  []Name   `json:"looked"`         // for which names the release looks; only where NCCL itself did not come so far
	Said    []string `json:"said"`           // lines of NCCL's log about plugins
	Weft    string   `json:"weft,omitempty"` // the weft that is loaded, or found
	Other   bool     `json:"other"`          // it is not the one that was expected
	Verdict string   `json:"verdict"`
	OK      bool     `json:"ok"`
}

// Name is one that was given to dlopen.
type Name struct {
	Name  string `json:"name"`
	Found string `json:"found,omitempty"` // the table that the release takes of it
	Error string `json:"error,omitempty"`
}

// output keeps what NCCL prints, from the process's pipe.
type output struct {
	mu  sync.Mutex // protects buf
	buf bytes.Buffer
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.buf.Len() > mostLog {
		return len(b), nil
	}
	return o.buf.Write(b)
}

func (o *output) lines() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.Split(o.buf.String(), "\n")
}

// mostLog is kept of NCCL's log, in bytes.
const mostLog = 4 << 20

// Check has the library load its plugins. An error is of what cannot be checked: no such file, or no NCCL.
func Check(o Options) (*Report, error) {
	out := &output{}
	h, err := host.Start(host.Options{Bin: o.Host, Name: "the process of this NCCL", Deadline: o.Wait, Stdout: out, Stderr: out,
		Env: []string{"NCCL_DEBUG=INFO", "NCCL_DEBUG_SUBSYS=INIT,NET,ENV", "NCCL_DEBUG_FILE="}})
	if err != nil {
		return nil, err
	}
	defer h.Kill()
	lib, err := h.Load(o.NCCL)
	if err != nil {
		return nil, fmt.Errorf("%w; name a libnccl.so.2 by its path, and have LD_LIBRARY_PATH lead to what it needs", err)
	}
	r := &Report{Schema: Schema, NCCL: o.NCCL, Loaded: []string{}, Looked: []Name{}, Said: []string{}}
	if path := mapped(h.PID, func(path string) bool {
		return strings.HasPrefix(filepath.Base(path), filepath.Base(o.NCCL)) || same(path, o.NCCL)
	}); len(path) > 0 {
		r.NCCL = path[0]
	}
	reply, err := h.CallIn(o.Wait, "main", "nccl.init", host.Args{"lib", lib.Handle})
	var command *host.CommandError
	if errors.As(err, &command) {
		return nil, fmt.Errorf("%s: %w", r.NCCL, err)
	}
	code := number(int(reply.Int("version")))
	if r.Release = "of a version that it did not come to say"; code > 0 {
		r.Release = fmt.Sprintf("%d.%d.%d", code/10_000, code/100%100, code%100)
	}
	switch {
	case err != nil:
		r.Failed = err.Error()
	case reply.Int("result") != 0:
		r.Failed = fmt.Sprintf("%s: %s", reply.Str("stage"), reply.Str("text"))
	default:
		r.Made = true
	}
	r.Loaded = append(r.Loaded, mapped(h.PID, plugin(o.Ours))...)
	if !r.Made && h.Err() == nil {
		if err := r.look(h, code); err != nil {
			return nil, err
		}
	}
	h.Kill() // and all that it has written is read
	r.read(out.lines())
	if r.Table != "" {
		r.Looked = []Name{}
	}
	r.judge(o.Ours)
	return r, nil
}

// number is 23007 for what a 2.30.7 calls itself; NCCL counted in thousands until 2.8.
func number(said int) int {
	if said < 10_000 {
		return said/1000*10_000 + said/100%10*100 + said%100
	}
	return said
}

// mapped are the files of a process that are wanted, each once.
func mapped(pid int, want func(path string) bool) (paths []string) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return nil // the process has ended; what its log says remains
	}
	for line := range strings.Lines(string(b)) {
		if i := strings.IndexByte(line, '/'); i >= 0 {
			if path := strings.TrimSpace(line[i:]); !slices.Contains(paths, path) && want(path) {
				paths = append(paths, path)
			}
		}
	}
	return paths
}

// plugin tells of a file whether it is a plugin by its name, or weft.
func plugin(ours string) func(path string) bool {
	name := regexp.MustCompile(`^lib(nccl|rccl)-(net|profiler|tuner|gin|rma|env)\b`)
	return func(path string) bool { return name.MatchString(filepath.Base(path)) || same(path, ours) }
}

// same tells whether two names lead to one file.
func same(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

var (
	ofPlugins = regexp.MustCompile(`(?i)plugin|dlopen|dlsym.*Plugin|Using network|NET/weft|Cuda failure|NCCL WARN`)
	firstUse  = regexp.MustCompile(`NET/weft : .*first used through table v(\d+)`)
)

// read takes from the log what it says of plugins.
func (r *Report) read(log []string) {
	for _, line := range log {
		_, text, ok := strings.Cut(line, "NCCL ")
		if !ok || !ofPlugins.MatchString(line) {
			continue
		}
		if m := firstUse.FindStringSubmatch(text); m != nil {
			v, _ := strconv.Atoi(m[1]) // digits
			r.Table = host.FamilyNet.Symbol(v)
		}
		if !slices.Contains(r.Said, text) && !strings.Contains(text, "NET/weft : NCCL_") {
			r.Said = append(r.Said, text)
		}
	}
}

// look opens the names for which the release looks, in its order.
func (r *Report) look(h *host.Host, code int) error {
	rel, err := known(code)
	if err != nil {
		return err
	}
	m, err := machine.Open("/")
	if err != nil {
		return err
	}
	if err := m.Start(); err != nil {
		return err
	}
	for _, names := range rel.NetNames(m.Setting("NCCL_NET_PLUGIN", code).Pointer()) {
		for _, name := range names {
			n := Name{Name: name}
			lib, err := h.Load(name)
			switch {
			case err != nil:
				n.Error = err.Error()
			default:
				have, err := lib.Tables(host.FamilyNet)
				if err != nil {
					return err
				}
				n.Error = "it has no table that this release takes"
				for _, v := range rel.Net {
					if slices.Contains(have, v) {
						n.Found, n.Error = host.FamilyNet.Symbol(v), ""
						break
					}
				}
			}
			r.Looked = append(r.Looked, n)
			if n.Found != "" {
				r.Loaded = mapped(h.PID, plugin(""))
				return nil
			}
			if err == nil {
				break // the first that opens is the library
			}
		}
	}
	return nil
}

// known is the release of that number; of one that is not known the newest before it.
func known(code int) (*release.Release, error) {
	all, err := release.All()
	if err != nil {
		return nil, err
	}
	best := all[0]
	for _, r := range all {
		if r.Code <= code && r.Code >= best.Code {
			best = r
		}
	}
	return best, nil
}
