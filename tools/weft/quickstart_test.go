package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"
)

// TestQuickStart runs what the page says between two hosts, word by word, and nothing else of weft is there than the archive that it
// begins with: WEFT_TEST_ARCHIVE=FILE names one.
func TestQuickStart(t *testing.T) {
	needsHosts(t)
	dir := t.TempDir()
	archive(t, dir)
	began := time.Now()
	said := scene{
		page: "docs/quickstart.md", hosts: "node1 node2", env: []string{"NCCL_IB_DISABLE=1"},
		// What a job has then is a shell with what weft env printed, in which no rule about plugins finds something.
		last: "weft doctor || [ $? = 1 ]",
		want: []string{"all is well", "NCCL_NET_PLUGIN='weft'", "BW average", "TCP eth0 -> eth0", "all data right"},
	}.play(t, dir)
	t.Logf("from the archive to verified traffic: %s", time.Since(began).Round(time.Second))
	if wrong := regexp.MustCompile(`WEFT-00\d breaks.*`).FindString(said); wrong != "" {
		t.Errorf("with what weft env says: %s", wrong)
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
