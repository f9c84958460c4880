package machine

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"strings"
)

// cached is an entry of the loader's cache.
type cached struct{ name, path string }

const (
	cacheFile  = "/etc/ld.so.cache"
	cacheMagic = "glibc-ld.so.cache1.1"
	oldMagic   = "ld.so-1.7.0" // a list in the format of glibc before 2.2 may come first
	cacheHead  = 48
	cacheEntry = 24
	oldHead    = 16
	oldEntry   = 12
	flagsLibc6 = 3
)

// cacheArch is the part of an entry's flags that says for which machine it is.
var cacheArch = map[string]uint32{"amd64": 0x0300, "arm64": 0x0a00}

func (m *Machine) readCache() ([]cached, error) {
	text, err := m.readFile(cacheFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if rest, ok := bytes.CutPrefix(text, []byte(toldCache)); ok && !m.Live() {
		return toldEntries(string(rest)), nil
	}
	return parseCache(text, binary.NativeEndian, cacheArch[runtime.GOARCH])
}

// toldCache is how a copy of a machine begins its cache: lines of text follow, a name and a path each, of what was asked for.
const toldCache = "a loader's cache, as weft doctor saw it\n"

func toldEntries(text string) (all []cached) {
	for line := range strings.Lines(text) {
		if name, path, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			all = append(all, cached{name, path})
		}
	}
	return all
}

// tellCache is the part of the cache that was asked for.
func (m *Machine) tellCache() string {
	var b strings.Builder
	b.WriteString(toldCache)
	for _, c := range m.cache {
		if m.asked[c.name] {
			fmt.Fprintf(&b, "%s %s\n", c.name, c.path)
		}
	}
	return b.String()
}

// parseCache returns the entries for one architecture, in the file's order.
func parseCache(text []byte, order binary.ByteOrder, arch uint32) ([]cached, error) {
	bad := fmt.Errorf("%s is in no format that is known here; ldconfig writes it anew", cacheFile)
	if bytes.HasPrefix(text, []byte(oldMagic)) {
		if len(text) < oldHead {
			return nil, bad
		}
		end := oldHead + oldEntry*uint64(order.Uint32(text[12:]))
		if end = (end + 7) &^ 7; end > uint64(len(text)) {
			return nil, bad
		}
		text = text[end:]
	}
	if !bytes.HasPrefix(text, []byte(cacheMagic)) || len(text) < cacheHead {
		return nil, bad
	}
	n := uint64(order.Uint32(text[20:]))
	if cacheHead+n*cacheEntry > uint64(len(text)) {
		return nil, bad
	}
	word := func(at uint32) (string, bool) {
		if uint64(at) >= uint64(len(text)) {
			return "", false
		}
		end := bytes.IndexByte(text[at:], 0)
		if end < 0 {
			return "", false
		}
		return string(text[at:][:end]), true
	}
	var all []cached
	for i := range n {
		e := text[cacheHead+i*cacheEntry:]
		name, ok := word(order.Uint32(e[4:]))
		path, too := word(order.Uint32(e[8:]))
		if !ok || !too {
			return nil, bad
		}
		if order.Uint32(e) == flagsLibc6|arch && order.Uint64(e[16:]) == 0 { // no capability of the processor is asked for
			all = append(all, cached{name, path})
		}
	}
	return all, nil
}
