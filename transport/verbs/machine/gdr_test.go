package machine_test

import (
	"os"
	"strings"
	"testing"

	"weft/internal/fakeibv"
	"weft/transport/verbs/machine"
)

// Any folder of the clients of peer memory that has a version is one, wherever the kernel keeps them.
func TestPeerClients(t *testing.T) {
	for _, c := range []struct {
		name  string
		files []string
		want  string
	}{
		{"none", nil, ""},
		{"an empty folder", []string{"kernel/mm/memory_peers/"}, ""},
		{"NVIDIA's", []string{"kernel/mm/memory_peers/nv_mem/version"}, "nv_mem"},
		{"AMD's", []string{"kernel/mm/memory_peers/amdkfd/version"}, "amdkfd"},
		{"of another name", []string{"kernel/memory_peers/other/version"}, "other"},
		{"in the last place", []string{"kernel/mm/memory_peers/", "memory_peers/amdkfd/version"}, "amdkfd"},
		{"the first of two", []string{"kernel/mm/memory_peers/nv_mem_nc/version", "memory_peers/amdkfd/version"}, "nv_mem_nc"},
		{"a file alone", []string{"kernel/mm/memory_peers/version"}, ""},
		{"not yet registered", []string{"kernel/mm/memory_peers/amdkfd/"}, ""},
		{"behind one that is not", []string{"kernel/mm/memory_peers/a/", "kernel/mm/memory_peers/amdkfd/version"}, "amdkfd"},
		{"hidden", []string{"kernel/mm/memory_peers/.hidden/version"}, ""},
	} {
		h := &machine.Machine{Root: t.TempDir()}
		for _, f := range c.files {
			if strings.HasSuffix(f, "/") {
				if err := os.MkdirAll(h.Sys(f), 0o755); err != nil {
					t.Fatal(err)
				}
				continue
			}
			fakeibv.Write(t, "1.0\n", h.Sys(f))
		}
		if got := h.GDR().Module; got != c.want {
			t.Errorf("%s: client %q, want %q", c.name, got, c.want)
		}
	}
}
