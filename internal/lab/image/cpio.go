package image

import (
	"fmt"
	"io"
)

// archive writes a cpio archive in the format "newc", the one that the kernel unpacks as its first root. Several such
// archives behind one another are unpacked in turn.
type archive struct {
	w   io.Writer
	ino int
	err error
}

const (
	modeDir    = 0o040000
	modeFile   = 0o100000
	modeDevice = 0o020000
)

func (a *archive) dir(name string) { a.entry(name, modeDir|0o755, 2, 0, 0, nil) }

func (a *archive) file(name string, perm int, data []byte) {
	a.entry(name, modeFile|perm, 1, 0, 0, data)
}

// device is a character device; the kernel makes it, so that no privilege is needed here.
func (a *archive) device(name string, perm, major, minor int) {
	a.entry(name, modeDevice|perm, 1, major, minor, nil)
}

// end closes the archive and says what went wrong first.
func (a *archive) end() error {
	a.ino = -1
	a.entry("TRAILER!!!", 0, 1, 0, 0, nil)
	return a.err
}

func (a *archive) entry(name string, mode, links, major, minor int, data []byte) {
	a.ino++
	if int64(len(data)) > 0xffffffff {
		a.err = fmt.Errorf("%s has %d bytes, too many for a cpio archive", name, len(data))
	}
	// ino mode uid gid nlink mtime filesize devmajor devminor rdevmajor rdevminor namesize check
	head := fmt.Sprintf("070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x",
		a.ino, mode, 0, 0, links, 0, len(data), 0, 0, major, minor, len(name)+1, 0)
	a.write([]byte(head + name + "\x00"))
	a.pad(len(head) + len(name) + 1)
	a.write(data)
	a.pad(len(data))
}

func (a *archive) pad(n int) { a.write(make([]byte, -n&3)) }

func (a *archive) write(b []byte) {
	if a.err == nil && len(b) > 0 {
		_, a.err = a.w.Write(b)
	}
}
