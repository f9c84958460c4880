package machine

import (
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"weft/internal/doctor/fixture"
)

// written makes a cache as ldconfig does, with or without the list of old.
func written(old bool, all ...cached) []byte {
	var head []byte
	if old {
		head = append(head, oldMagic+"\x00"...)
		head = binary.NativeEndian.AppendUint32(head, 1)
		head = append(head, make([]byte, oldEntry+4)...)
	}
	b := append([]byte(cacheMagic), make([]byte, cacheHead-len(cacheMagic))...)
	binary.NativeEndian.PutUint32(b[20:], uint32(len(all)))
	var words []byte
	at := uint32(cacheHead + cacheEntry*len(all))
	for _, c := range all {
		b = binary.NativeEndian.AppendUint32(b, flagsLibc6|0x0300)
		b = binary.NativeEndian.AppendUint32(b, at+uint32(len(words)))
		words = append(words, c.name+"\x00"...)
		b = binary.NativeEndian.AppendUint32(b, at+uint32(len(words)))
		words = append(words, c.path+"\x00"...)
		b = append(b, make([]byte, 12)...)
	}
	return append(append(head, b...), words...)
}

func TestCache(t *testing.T) {
	want := []cached{{"libnccl-net.so", "/opt/x/libnccl-net.so"}, {"libz.so.1", "/lib/libz.so.1"}}
	for _, old := range []bool{false, true} {
		got, err := parseCache(written(old, want...), binary.NativeEndian, 0x0300)
		if err != nil || len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
			t.Errorf("%v, %v", got, err)
		}
		if got, err := parseCache(written(old, want...), binary.NativeEndian, 0x0a00); err != nil || len(got) != 0 {
			t.Errorf("another machine's: %v, %v", got, err)
		}
	}
}

// TestCacheOfThisMachine reads what ldconfig writes for a folder, and dlopen finds a library by it.
func TestCacheOfThisMachine(t *testing.T) {
	ldconfig, err := exec.LookPath("/sbin/ldconfig")
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	for _, d := range []string{"etc", "opt/weft", "proc/self"} {
		if err := os.MkdirAll(filepath.Join(root, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, b := range map[string][]byte{"etc/ld.so.conf": []byte("/opt/weft\n"), "opt/weft/libnccl-net-weft.so": fixture.Library(t, "weft")} {
		if err := os.WriteFile(filepath.Join(root, name), b, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	// Its own -r needs to be root: the cache is of the folder as it is named here.
	conf := filepath.Join(root, "here.conf")
	if err := os.WriteFile(conf, []byte(root+"/opt/weft\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if text, err := exec.Command(ldconfig, "-X", "-f", conf, "-C", filepath.Join(root, cacheFile)).CombinedOutput(); err != nil {
		t.Fatalf("ldconfig: %v\n%s", err, text)
	}
	b, err := os.ReadFile(filepath.Join(root, cacheFile))
	if err != nil {
		t.Fatal(err)
	}
	// Names as on the machine: of the same length, so that the file stays what it is.
	path := root + "/opt/weft/libnccl-net-weft.so"
	on := "/opt/weft/" + strings.Repeat("/", len(path)-len("/opt/weft/libnccl-net-weft.so")) + "libnccl-net-weft.so"
	b = []byte(strings.ReplaceAll(string(b), path, on))
	if err := os.WriteFile(filepath.Join(root, cacheFile), b, 0o644); err != nil {
		t.Fatal(err)
	}
	m, err := Open(root)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Start(); err != nil {
		t.Fatal(err)
	}
	if l := m.Dlopen("libnccl-net-weft.so"); !l.Weft() {
		t.Errorf("%v; cache %v", l, m.cache)
	}
}

func FuzzCache(f *testing.F) {
	f.Add(written(true, cached{"a", "b"}))
	f.Add(written(false, cached{"libx.so", "/lib/libx.so"}, cached{"y", "z"}))
	f.Fuzz(func(t *testing.T, b []byte) {
		if all, err := parseCache(b, binary.LittleEndian, 0x0300); err != nil && all != nil {
			t.Error("entries beside an error")
		}
	})
}
