package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// Two hosts with a cable between them, in namespaces that end with the shell: its own network is node1, and /etc/hosts names both.
const twoHosts = `set -e
mount --bind "$HOSTS" /etc/hosts
mount -t tmpfs none /run
mkdir /run/netns
ip netns add node2
ip link add eth0 type veth peer name eth0 netns node2
ip addr add 10.80.0.1/24 dev eth0
ip -n node2 addr add 10.80.0.2/24 dev eth0
for up in "ip link set lo up" "ip link set eth0 up" "ip -n node2 link set lo up" "ip -n node2 link set eth0 up"; do $up; done
`

// TestQuickStart runs what the page says between two hosts, word by word. WEFT_TEST_ARCHIVE=FILE names the archive that it begins with.
func TestQuickStart(t *testing.T) {
	apart := []string{"-mnpf", "--mount-proc", "--kill-child"}
	if out, err := exec.Command("unshare", append(apart, "ip", "netns", "list")...).CombinedOutput(); err != nil {
		t.Skipf("no networks of one's own here: %v %s", err, out)
	}
	dir := t.TempDir()
	archive(t, dir)
	page, err := os.ReadFile("../../docs/quickstart.md")
	if err != nil {
		t.Fatal(err)
	}
	script, begun := twoHosts, 0
	for _, block := range regexp.MustCompile("(?s)<!-- on: ([^>]*) -->\n```sh\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
		where, background := strings.CutSuffix(block[1], ", in the background")
		for node := range strings.SplitSeq(where, ", ") {
			enter, known := map[string]string{"node1": "", "node2": "ip netns exec node2 "}[node]
			if !known {
				t.Fatalf("there is no host %q", node)
			}
			for command := range strings.Lines(block[2]) {
				command = enter + strings.TrimSpace(command)
				if background {
					begun++
					script += fmt.Sprintf("%s >\"$OUT/%d\" 2>&1 & last=$!\n", command, begun)
				} else {
					script += fmt.Sprintf("echo '== %s: %s'\n%s\n", node, command, command)
				}
			}
		}
		if !background && strings.Contains(script, "last=") {
			script += "wait $last\n" // its status, too
		}
	}
	if begun != 2 {
		t.Fatalf("%d commands of the page wait for another", begun)
	}
	// What a job has then is a shell with what weft env printed, in which no rule about plugins finds something.
	script += "eval \"$(weft env)\"\nweft doctor || :\n"
	hosts := filepath.Join(dir, "hosts")
	if err := os.WriteFile(hosts, []byte("127.0.0.1 localhost\n10.80.0.1 node1\n10.80.0.2 node2\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, "unshare", append(apart, "sh", "-c", script)...)
	c.Dir = dir
	c.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "NCCL_") || strings.HasPrefix(v, "WEFT_") })
	c.Env = append(c.Env, "NCCL_IB_DISABLE=1", "HOSTS="+hosts, "OUT="+dir)
	began := time.Now()
	out, err := c.CombinedOutput()
	t.Logf("from the archive to verified traffic: %s", time.Since(began).Round(time.Second))
	said := string(out)
	for i := range begun {
		b, _ := os.ReadFile(filepath.Join(dir, fmt.Sprint(i+1)))
		said += fmt.Sprintf("== in the background, %d\n%s", i+1, b)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	for _, want := range []string{"all is well", "NCCL_NET_PLUGIN='weft'", "BW average", "TCP eth0 -> eth0", "all data right"} {
		if !strings.Contains(said, want) {
			t.Errorf("%q is not said", want)
		}
	}
	if wrong := regexp.MustCompile(`WEFT-00\d breaks.*`).FindString(string(out)); wrong != "" {
		t.Errorf("with what weft env says: %s", wrong)
	}
	if t.Failed() {
		t.Log(said)
	}
}

// archive puts the archive of a release into a folder: one that make packages has made, or one with the same place for everything.
func archive(t *testing.T, dir string) {
	t.Helper()
	if made := os.Getenv("WEFT_TEST_ARCHIVE"); made != "" {
		if out, err := exec.Command("cp", made, dir).CombinedOutput(); err != nil {
			t.Fatalf("%v %s", err, out)
		}
		return
	}
	root := filepath.Dir(filepath.Dir(installed(t, ours(t))))
	if err := os.Mkdir(filepath.Join(root, "lib/default"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, link := range []string{"libnccl-net.so", "libnccl-profiler.so", "librccl-net.so"} {
		if err := os.Symlink("../libnccl-net-weft.so", filepath.Join(root, "lib/default", link)); err != nil {
			t.Fatal(err)
		}
	}
	const name = "weft-0-linux-amd64" // for the page's pattern
	if out, err := exec.Command("tar", "czf", filepath.Join(dir, name+".tar.gz"), "--transform", "s,^[.],"+name+",S", "-C", root, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
}
