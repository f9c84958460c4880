package env

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"weft/internal/doctor/fixture"
	"weft/internal/doctor/machine"
	"weft/internal/golden"
)

const library = "/opt/weft/lib/libnccl-net-weft.so"

// files are a machine of doctor's with further variables; bare has weft where the loader does not look.
func files(t *testing.T, name, env string) fstest.MapFS {
	t.Helper()
	all := fixture.Machine(t, filepath.Join("../../doctor/testdata", name+".txtar"), "broken")
	text := ""
	if f := all["proc/self/environ"]; f != nil {
		text = string(f.Data)
	}
	all["proc/self/environ"] = &fstest.MapFile{Data: []byte(env + text)}
	if all["usr/lib/libnccl-net-weft.so"] == nil {
		all[library[1:]] = &fstest.MapFile{Data: fixture.Library(t, "weft")}
	}
	return all
}

func needs(t *testing.T, all fstest.MapFS) *Report {
	t.Helper()
	r, err := New(machine.OpenFS(all), library)
	if err != nil {
		t.Fatal(err)
	}
	r.Weft = "weft VERSION"
	return r
}

// What whole machines need, and those that rules break; who has set it needs the same, and nothing more.
func TestMachines(t *testing.T) {
	for _, name := range []string{
		"machines/bare", "machines/roce", "machines/dgx-h100", "machines/dgx-spark", "machines/dgx-spark-broken", "machines/dgx-spark NCCL_IB_HCA=^roceP2p1",
		"machines/cloud-vm", "machines/container-broken", "machines/node-broken", "machines/node-broken NCCL_NET_PLUGIN=none",
		"rules/WEFT-009", "rules/WEFT-010", "rules/WEFT-012", "rules/WEFT-023", "rules/WEFT-024", "rules/WEFT-025", "rules/WEFT-033", "rules/WEFT-034", "rules/WEFT-036",
		"rules/WEFT-040", "rules/WEFT-044", "rules/WEFT-046", "rules/WEFT-086", "rules/WEFT-100", "rules/WEFT-101", "rules/WEFT-104", "rules/WEFT-105",
	} {
		t.Run(name, func(t *testing.T) {
			archive, env, _ := strings.Cut(name, " ")
			all := files(t, archive, env+"\n")
			r := needs(t, all)
			golden.File(t, filepath.Join("testdata", strings.TrimSuffix(filepath.Base(archive)+"_"+strings.NewReplacer("=", "_", "^", "").Replace(env), "_")+".txt"), written(t, r, "sh"))
			if r.Missing != "" {
				t.Errorf("weft is not found: %s", r.Missing)
			}
			set := ""
			for _, v := range r.Variables {
				set += v.Name + "=" + v.Value + "\n"
			}
			all["proc/self/environ"].Data = append([]byte(set), all["proc/self/environ"].Data...)
			again := needs(t, all)
			if len(again.Variables) > len(r.Variables) || !cmp.Equal(again.Left, r.Left) {
				t.Errorf("set, there is more: %+v, left %q, were %q", again.Variables, again.Left, r.Left)
			}
			for _, v := range again.Variables {
				if !v.Same {
					t.Errorf("set, it is another: %+v", v)
				}
			}
		})
	}
}

// The archive has the links that every NCCL opens in a folder of their own, which is searched too.
func TestLinksOfTheArchive(t *testing.T) {
	all := files(t, "machines/bare", "")
	for _, name := range []string{"libnccl-net.so", "librccl-net.so"} {
		all["opt/weft/lib/default/"+name] = &fstest.MapFile{Data: fixture.Library(t, "weft")}
	}
	r := needs(t, all)
	const want = "/opt/weft/lib/default:/opt/weft/lib"
	for _, v := range r.Variables {
		if v.Name == "LD_LIBRARY_PATH" && v.Value == want {
			if len(r.Left) > 0 {
				t.Errorf("left: %q", r.Left)
			}
			return
		}
	}
	t.Errorf("%+v, want LD_LIBRARY_PATH=%s", r.Variables, want)
}

func written(t *testing.T, r *Report, format string) string {
	t.Helper()
	var b strings.Builder
	if err := r.Write(&b, format); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// hostile is a report whose every text tries to be a command.
func hostile() *Report {
	evil := "a'; echo \"$(id)\" `id` \\ \t* ~ #\rtouch evil\nexport EVIL=1\u2028!"
	return &Report{Host: evil, Weft: evil, Missing: evil, Left: []string{evil}, Variables: []Variable{
		{Name: "NCCL_NET_PLUGIN", Value: "weft", Why: evil},
		{Name: "NCCL_IB_HCA", Value: evil, Why: "x", Was: evil},
		{Name: "NCCL_IB_GID_INDEX", Value: "", Why: "x"},
	}}
}

// What a real shell makes of it is what was meant, and nothing besides.
func TestShell(t *testing.T) {
	r := hostile()
	cmd := exec.Command("/bin/sh", "-euc", `eval "$1"; exec env -0`, "sh", written(t, r, "sh"))
	cmd.Env, cmd.Dir = []string{"PATH=/usr/bin:/bin"}, t.TempDir()
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, stderr.String())
	}
	got := map[string]string{}
	for entry := range strings.SplitSeq(string(out), "\x00") {
		if name, value, ok := strings.Cut(entry, "="); ok && name != "PATH" && name != "PWD" && name != "OLDPWD" && name != "_" && name != "SHLVL" {
			got[name] = value
		}
	}
	want := map[string]string{}
	for _, v := range r.Variables {
		want[v.Name] = v.Value
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if left, _ := os.ReadDir(cmd.Dir); len(left) > 0 || stderr.Len() > 0 {
		t.Errorf("it did something: %v, %q", left, stderr.String())
	}
}

// The other forms: a line each, and what a line cannot hold is refused.
func TestFormats(t *testing.T) {
	r := &Report{Schema: Schema, Host: "n", Weft: "v", Variables: []Variable{
		{Name: "NCCL_NET_PLUGIN", Value: "weft", Why: "its name"}, {Name: "NCCL_SOCKET_IFNAME", Value: "=eth0", Why: "docker0", Was: "docker0 (the environment)"},
	}, Left: []string{"WEFT-070 breaks: too little"}}
	for format, want := range map[string]string{
		"docker": "# what n needs, as v sees it\n# its name\nNCCL_NET_PLUGIN=weft\n# docker0; it was docker0 (the environment)\nNCCL_SOCKET_IFNAME==eth0\n" +
			"# no variable mends WEFT-070 breaks: too little (weft doctor)\n",
		"slurm": "export NCCL_NET_PLUGIN=weft\nexport NCCL_SOCKET_IFNAME==eth0\n",
	} {
		if got := written(t, r, format); got != want {
			t.Errorf("%s: %q, want %q", format, got, want)
		}
	}
	if got := written(t, r, "json"); !strings.Contains(got, `"schema": "weft.env/1"`) || !strings.Contains(got, `"value": "=eth0"`) {
		t.Errorf("json: %s", got)
	}
	for _, format := range []string{"docker", "slurm", "csh"} {
		var b strings.Builder
		if err := hostile().Write(&b, format); err == nil || b.Len() > 0 {
			t.Errorf("%s holds several lines, or is no format: %q", format, b.String())
		}
	}
}

// Without a library nothing promises that weft is found.
func TestMissing(t *testing.T) {
	all := files(t, "machines/bare", "")
	delete(all, library[1:])
	r, err := New(machine.OpenFS(all), "")
	if err != nil {
		t.Fatal(err)
	}
	if r.Missing == "" || len(r.Variables) != 1 || !strings.Contains(written(t, r, "sh"), "# no NCCL will find weft: ") {
		t.Errorf("%+v", r)
	}
}
