package conform

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"weft/internal/host"
	"weft/internal/metrics"
	"weft/internal/simverbs"
)

// counted is what the one process that counted in dir has counted.
func counted(t *testing.T, dir string) *metrics.File {
	t.Helper()
	files, bad, err := metrics.Load([]string{dir})
	if err != nil || len(bad) != 0 || len(files) != 1 {
		t.Fatalf("%d files in %s: %v %v", len(files), dir, err, bad)
	}
	return files[0]
}

// TestMetrics counts the messages of connections, while they are open and once they are closed, and those of a process
// that was killed, of the oldest table and the newest. With a trace, both are complete.
func TestMetrics(t *testing.T) {
	card := simverbs.Device{Name: "sim0", PCI: "0000:81:00.0", GIDs: []string{"10.101.0.1/24"}}
	first, last := host.FamilyNet.Versions()
	for _, rdma := range []bool{false, true} {
		for _, version := range []int{first, last} {
			t.Run(fmt.Sprintf("v%d rdma %v", version, rdma), func(t *testing.T) {
				t.Parallel()
				dir := filepath.Join(t.TempDir(), "made")
				mode := map[bool]string{false: "metrics", true: "trace,metrics"}[version == last]
				env := []string{"WEFT_PROFILE=" + mode, "WEFT_PROFILE_SIZE=4", "WEFT_PROFILE_DIR=" + dir}
				if rdma {
					env = append(env, simulated(t, card)...)
				}
				const messages = 20
				sizes := []int64{8, 300000}
				look := func(connections int, open bool) {
					t.Helper()
					f := counted(t, dir)
					sums := f.Sums()
					if len(sums) != 2 || f.Uncounted != 0 || f.PID == 0 || f.Alive == 0 {
						t.Fatalf("%d sums: %+v", len(sums), f)
					}
					for i, s := range sums {
						c, n := &s.Counts, uint64(connections*messages)
						if s.Sends != (i == 0) || s.RDMA != rdma || s.Device == "" || s.PeerDevice != s.Device || s.Peer != f.Host || uint64(s.PeerPID) != f.PID {
							t.Errorf("counted is %+v of %s", s.Key, f.Host)
						}
						if c.Messages != n || c.Timed() != n || c.Bytes != n/2*uint64(sizes[0]+sizes[1]) || c.Failed != 0 || c.Time == 0 || s.InFlight != 0 {
							t.Errorf("%s: %d messages, %d timed, %d bytes, %d failed", s.Direction(), c.Messages, c.Timed(), c.Bytes, c.Failed)
						}
						if open != (s.Connections == 1) || open != (s.Lanes > 0) || c.Closed != uint64(connections-s.Connections) || c.Broken != 0 {
							t.Errorf("%s: %d open, %d lanes, %d closed, %d broken", s.Direction(), s.Connections, s.Lanes, c.Closed, c.Broken)
						}
						lanes := uint64(0)
						for _, n := range c.LaneBytes {
							lanes += n
						}
						if want := map[bool]uint64{true: c.Bytes}[rdma && s.Sends]; lanes != want {
							t.Errorf("%s: %d bytes by lane, want %d", s.Direction(), lanes, want)
						}
					}
				}
				checks(t, version, env, func(e *Env) {
					p := e.open("process")
					p.init()
					for connections := range 2 {
						l := e.join(p, p, 0)
						a, b := p.buf(sizes[1]), p.buf(sizes[1])
						for i := range messages {
							e.run(l.recvOp(1, b), l.sendOp(a, sizes[i%2], 1))
						}
						look(connections+1, true)
						if connections > 0 {
							return
						}
						for _, what := range closes {
							e.must(l.closing(what), what)
						}
						look(connections+1, false)
					}
				}) // which kills the process
				look(2, true)
				if version == last {
					if c := recorded(t, dir).Connections; len(c) != 2 || len(c[0].Pairs) != messages {
						t.Errorf("the trace has %d connections", len(c))
					}
				}
				if st, err := os.Stat(counted(t, dir).Path); err != nil || st.Mode().Perm() != 0o600 {
					t.Error(st, err)
				}
			})
		}
	}
}
