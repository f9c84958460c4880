package knobs

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/fstest"

	"weft/internal/doctor"
	"weft/internal/doctor/fixture"
	"weft/internal/doctor/machine"
	"weft/internal/golden"
	"weft/internal/knob"
)

func look(t *testing.T, env string, files map[string]string) *doctor.Exam {
	t.Helper()
	all := fixture.Machine(t, "../../doctor/testdata/machines/roce.txtar", "")
	all["proc/self/environ"] = &fstest.MapFile{Data: []byte(env)}
	for name, text := range files {
		all[name] = &fstest.MapFile{Data: []byte(text)}
	}
	x, err := doctor.Examine(machine.OpenFS(all), 0)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// Every state and every place, as they are told.
func TestText(t *testing.T) {
	x := look(t, strings.Join([]string{
		"HOME=/home/alice", "NCCL_CONF_FILE=/etc/job.conf", "NCCL_NET_PLUGIN=weft", "NCCL_IB_HCA=mlx5_0", "NCCL_IB_TIMEOUT=99", "NCCL_SOCKET_INLINE=64",
		"NCCL_IB_GID_IDNEX=3", "NCCL_IB_GID_INDEX=a,b", "NCCL_PSK=0123456789abcdef", "NCCL_ALGO=Ring", "WEFT_STRIPING=", "WEFT_TIMEOT=5", "WEFT_RUN_DIR=/tmp", "NCCL_IB_ADDR_RANGE=10.1.0.0",
		"RCCL_IB_QP_SCHED_MIN=4", "NCCL_LIBIBVERBS_SO=/opt/libibverbs.so", "PATH=/bin",
	}, "\n")+"\n", map[string]string{
		"etc/job.conf":          "NCCL_IB_TC=106\nNCCL_IB_HCA=mlx5_1\n",
		"home/alice/.nccl.conf": "NCCL_IB_SL=3\n",
		"etc/nccl.conf":         "# of the site\nNCCL_IB_TC=41\nNCCL_DEBUG=WARN\nWEFT_TIMEOUT=20\n",
	})
	var b strings.Builder
	if err := New(x, false).Text(&b); err != nil {
		t.Fatal(err)
	}
	golden.File(t, "testdata/knobs.txt", b.String())
	if strings.Contains(b.String(), "0123456789abcdef") {
		t.Error("a secret is shown")
	}
}

// Without a setting there is nothing to tell, and all are all.
func TestAll(t *testing.T) {
	x := look(t, "HOME=/root\n", nil)
	var b strings.Builder
	if err := New(x, false).Text(&b); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(b.String(), "No variable") {
		t.Errorf("%q", b.String())
	}
	if got := New(x, true).Knobs; len(got) != len(knob.All()) || got[0].State != Unset || got[0].Legal == "" || got[0].Default == "" {
		t.Errorf("%d knobs, want %d; the first is %+v", len(got), len(knob.All()), got[0])
	}
	text, err := json.Marshal(New(x, false))
	if want := `{"schema":"weft.knobs/1","host":"node7","knobs":[]}`; err != nil || string(text) != want {
		t.Errorf("%s, %v, want %s", text, err, want)
	}
}
