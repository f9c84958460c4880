package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"weft/internal/build"
	"weft/internal/doctor"
	"weft/internal/simverbs"
)

// scene is a page whose commands are run word by word, and what they find.
type scene struct {
	page  string
	hosts string            // their names; the first is where the shell is
	files map[string]string // paths of the page, which the hosts have, and what is copied there
	env   []string
	// What a command is, by its beginning: until is what shows that one has done its work which runs until it is ended ($said has
	// what it has said), then is what the page asks for in words after it.
	until, then map[string]string
	last        string   // what is looked at in the shell where all has been run
	want        []string // what is said in the end
	outputs     bool     // what the page shows of the programs' output is said, too, figures aside
}

// apart is what ends all of a scene with its shell.
var apart = []string{"-mnpuf", "--mount-proc", "--kill-child"}

// Hosts on one switch, which end with the shell; what is written into the folders of $OVER is gone then too.
const hostsOfPage = `set -e
mount -t tmpfs none /run
mkdir -p /run/netns /run/said
for d in $OVER; do
	mkdir -p /run/over$d/up /run/over$d/work
	mount -t overlay none -o lowerdir=$d,upperdir=/run/over$d/up,workdir=/run/over$d/work $d
done
cd "$PWD" # the folder may be below one of them, and is still the one beneath until then
mount -t tmpfs none /dev/shm
ip netns add switch
ip -n switch link add switch type bridge forward_delay 0
ip -n switch link set switch up
echo 127.0.0.1 localhost >/run/hosts
last=0
for h in $NAMES; do
	if [ $last = 0 ]; then
		ip netns attach $h $$
		echo $h >/proc/sys/kernel/hostname
	else
		ip netns add $h
	fi
	last=$((last + 1))
	ip -n $h link set lo up
	ip -n $h link add eth0 type veth peer name port$last netns switch
	ip -n switch link set port$last master switch up
	ip -n $h addr add 10.80.0.$last/24 dev eth0
	ip -n $h link set eth0 up
	echo 10.80.0.$last $h >>/run/hosts
done
mount --bind /run/hosts /etc/hosts
trap 'for f in /run/said/*; do [ ! -e $f ] || { echo "== in the background"; cat $f; }; done' EXIT
within() { # a minute, the condition $1 holds
	for i in $(seq 600); do
		if eval "$1"; then return 0; fi
		sleep .1
	done
	echo "not within a minute: $1"
	return 1
}
`

// What stands for other programs: entering a host, ssh and srun (which launch_test.go and hosts_test.go have themselves), a job.
var standIns = map[string]string{
	"on":       "h=$1; shift\nexec ip netns exec $h unshare -u sh -c 'echo $0 >/proc/sys/kernel/hostname; exec \"$@\"' $h env ${WEFT_SIMVERBS:+WEFT_SIMVERBS_NODE=$h} \"$@\"\n",
	"ssh":      "while [ \"$1\" = -o ]; do shift 2; done\nh=$1; shift\nexec on $h sh -c \"$*\"\n",
	"torchrun": `[ "$NCCL_NET_PLUGIN" = weft ] && echo "torchrun $*"` + "\n",
	"srun": `n=2
if [ $1 = -N ]; then n=$2; shift 2; fi
rank=0
for h in $(echo $NAMES | cut -d ' ' -f -$n); do
	SLURM_PROCID=$rank SLURM_JOB_ID=$$ SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=$n SLURM_STEP_NUM_NODES=$n SLURM_STEP_NODELIST=${NAMES%% *} on $h "$@" &
	pids="$pids $!"
	rank=$((rank + 1))
done
for p in $pids; do wait $p || failed=$?; done
exit ${failed:-0}
`,
	// Half a second of each size, in up to nine rounds, is for those who want the figures.
	"weft": "case \"$1 $2\" in 'perf '*) set -- \"$@\" --duration 5ms --rounds 1;; esac\nexec /usr/bin/weft \"$@\"\n",
}

// play runs what a page says, word by word, in a folder, and returns what was said.
func (s scene) play(t *testing.T, dir string) string {
	t.Helper()
	script, background := hostsOfPage, 0
	for path, from := range s.files {
		script += fmt.Sprintf("mkdir -p $(dirname %s) && cp -r %s %[1]s\n", path, from)
	}
	pick := func(from map[string]string, command string) string {
		for begin, what := range from {
			if strings.HasPrefix(command, begin) {
				return what
			}
		}
		return ""
	}
	waits := false
	for _, c := range shownIn(t, s.page) {
		if c.kind != "on" {
			continue
		}
		where, how, _ := strings.Cut(c.how, ", ")
		for node := range strings.SplitSeq(where, "+") {
			enter := "on " + node + " "
			switch i := slices.Index(strings.Fields(s.hosts), node); i {
			case -1:
				t.Fatalf("%s: there is no host %q", s.page, node)
			case 0:
				enter = ""
			}
			script += "echo '== '" + doctor.ShellQuote(node+": "+c.command) + "\n"
			command := enter + c.command
			bare, _, _ := strings.Cut(c.command, " #")
			aside := fmt.Sprintf("%s%s >/run/said/%d 2>&1 & last=$!\n", enter, bare, background)
			switch how {
			case "":
				if strings.HasPrefix(c.command, "weft doctor") || strings.Contains(c.command, " --compare ") {
					command = enter + bare + " || [ $? = 1 ]" // findings, on this machine
				}
				script += command + "\n"
				if waits {
					script, waits = script+"wait $last\n", false // its status, too
				}
			case "in the background":
				script, waits = script+aside, true
				background++
			case "until ended":
				shows := pick(s.until, c.command)
				if shows == "" {
					t.Fatalf("%s: nothing is known to show that %q has done its work", s.page, c.command)
				}
				script += aside + fmt.Sprintf("said=/run/said/%d\nwithin %s\nkill $last\nwait $last\n", background, doctor.ShellQuote(shows))
				background++
			case "fails":
				script += "if " + enter + bare + "; then echo 'it should fail'; exit 1; fi\n"
			default:
				t.Fatalf("%s: how does %q run?", s.page, how)
			}
		}
		if then := pick(s.then, c.command); then != "" {
			script += then + "\n"
		}
	}
	stand := filepath.Join(t.TempDir(), "stand-ins")
	if err := os.Mkdir(stand, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range standIns {
		if name == "weft" && s.files == nil {
			continue // the page brings it
		}
		if err := os.WriteFile(filepath.Join(stand, name), []byte("#!/bin/sh\n"+text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, "unshare", append(apart, "sh", "-c", script+s.last)...)
	c.Dir = dir
	c.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "NCCL_") || strings.HasPrefix(v, "WEFT_") })
	c.Env = append(c.Env, "PATH="+stand+":"+os.Getenv("PATH"), "NAMES="+s.hosts)
	c.Env = append(c.Env, s.env...)
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range s.want {
		if !strings.Contains(string(out), want) {
			t.Errorf("%q is not said", want)
		}
	}
	if s.outputs {
		rest := string(out)
		for _, line := range outputsIn(t, s.page) {
			at := sameButFigures(line).FindStringIndex(rest)
			if at == nil {
				t.Errorf("the page shows %q, which is not said, or not in this order", line)
				break
			}
			rest = rest[at[1]:]
		}
	}
	if t.Failed() {
		t.Logf("%s", out)
	}
	return string(out)
}

// A collector of OpenTelemetry, in a process of this program: its host is one of a page's.
func init() {
	at := os.Getenv("WEFT_TEST_COLLECTOR")
	if at == "" {
		return
	}
	fmt.Println(http.ListenAndServe(at, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		fmt.Println(r.URL.Path, bytes.Contains(body, []byte("weft")), err)
	})))
	os.Exit(1)
}

// sparks are the cards of three machines that are cabled to one another as docs/spark.md has them.
func sparks(t *testing.T) (env []string) {
	t.Helper()
	w := simverbs.World{Name: "sparks"}
	for _, h := range []struct{ node, first, second string }{{"a", "10.1.%d.1/24", "10.3.%d.1/24"}, {"b", "10.2.%d.1/24", "10.1.%d.2/24"}, {"c", "10.3.%d.2/24", "10.2.%d.2/24"}} {
		for port, gid := range []string{h.first, h.second} {
			for function, name := range []string{"rocep1s0f%d", "roceP2p1s0f%d"} {
				w.Devices = append(w.Devices, simverbs.Device{Name: fmt.Sprintf(name, port), Node: h.node, GIDs: []string{fmt.Sprintf(gid, function)}})
			}
		}
	}
	dist, err := simverbs.Dist()
	if err != nil {
		t.Fatal(err)
	}
	env, err = w.Env(dist, "")
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(env, func(v string) bool { return strings.HasPrefix(v, "WEFT_SIMVERBS_NODE=") }) // each host says its own
}

const oneJobOf = "#!/bin/sh\nexec weft run --sizes 8,64K --iters 5\n"

var scenes = []scene{
	{page: "README.md", hosts: "host", last: "NCCL_SOCKET_IFNAME=eth0 dist/bin/weft info knobs", want: []string{"over sim0", "all data right", "NCCL_NET=weft"}},
	{page: "docs/check.md", hosts: "host", env: []string{"NCCL_NET_PLUGIN=weft"}, outputs: true},
	{page: "docs/collnet.md", hosts: "host", want: []string{"between 4 ranks", "# all data right: 2 tables, "}},
	{page: "docs/install.md", hosts: "host", want: []string{"all is well", "NCCL 2.30.7 loads weft"}},
	{page: "docs/metrics.md", hosts: "node1 node2 collector",
		then: map[string]string{"srun": "mkdir /var/lib/node_exporter\nWEFT_TEST_COLLECTOR=:4318 on collector $SELF >/run/said/collector 2>&1 &"},
		until: map[string]string{
			"weft top":                `grep -q "node1.*node2" $said`,
			"weft metrics --listen":   `bash -c "exec 3<>/dev/tcp/127.0.0.1/9464 && echo GET /metrics HTTP/1.0 >&3 && echo >&3 && grep -q ^weft_messages_total <&3"`,
			"weft metrics --textfile": "grep -sq ^weft_messages_total /var/lib/node_exporter/weft.prom",
			"weft metrics --otlp":     "grep -q '/v1/metrics true' /run/said/collector",
		}},
	{page: "docs/migrate.md", hosts: "host", last: "NCCL_SOCKET_IFNAME=eth0 weft doctor || [ $? = 1 ]", want: []string{"NCCL_NET_PLUGIN=weft", "NCCL 2.30.7 loads weft", "# ratio: "}},
	{page: "docs/perf.md", hosts: "node1 node2 node3",
		last: "test -s monday.json && grep -q '<svg' matrix.html", want: []string{"BW average", "t_typical", "# ratio: ", "libnccl-net-ofi.so", "# rows send"}},
	{page: "docs/spark.md", hosts: "a b c", want: []string{"RoCE roce", "# all data right", "torchrun --nnodes 3"}},
	{page: "docs/trace.md", hosts: "node1 node2", then: map[string]string{"srun": "cp -r /tmp/traces traces"},
		last: "test -s job.pftrace && grep -q '<svg' job.html", want: []string{"node1"}},
}

// What pages say is run, word by word, by hosts that have weft where a package puts it, an NCCL, and another plugin.
func TestPages(t *testing.T) {
	needsHosts(t)
	root := filepath.Dir(filepath.Dir(installed(t, ours(t))))
	nccl, err := build.Plugin("internal/loads/testdata/nccl.c", "-DVERSION=23007", "-ldl")
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range scenes {
		t.Run(s.page, func(t *testing.T) {
			dir := t.TempDir()
			s.env = append(s.env, "SELF="+self, "OVER=/usr /opt /var/lib /tmp")
			if s.page == "docs/spark.md" {
				s.env = append(s.env, sparks(t)...)
			} else {
				s.env = append(s.env, "NCCL_IB_DISABLE=1")
			}
			if s.page == "README.md" { // where it is, and nothing stays of what it builds
				tree, err := build.Root()
				if err != nil {
					t.Fatal(err)
				}
				dir, s.env = tree, append(s.env, "OVER="+tree)
			} else {
				s.files = map[string]string{"/usr/bin/weft": root + "/bin/weft", "/usr/bin/weft-host": root + "/bin/weft-host", "/usr/lib/libnccl-net-weft.so": root + "/lib/libnccl-net-weft.so",
					"/usr/lib/libnccl.so.2": nccl, "/usr/lib/x86_64-linux-gnu/libnccl.so.2": nccl, "/opt/amazon/lib/libnccl-net-ofi.so": good(t), "OLD.so": good(t)}
				for name, text := range map[string]string{"job": oneJobOf, "train.py": ""} {
					if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
						t.Fatal(err)
					}
				}
			}
			s.play(t, dir)
		})
	}
}

// needsHosts skips where no hosts can be made.
func needsHosts(t *testing.T) {
	t.Helper()
	if out, err := exec.Command("unshare", append(apart, "ip", "netns", "list")...).CombinedOutput(); err != nil {
		t.Skipf("no networks of one's own here: %v %s", err, out)
	}
}
