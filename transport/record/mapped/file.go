package mapped

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"weft/internal/node"
	"weft/transport/record/format"
)

// Spec says which file is wanted.
type Spec struct {
	Dir    string // made if it is not there, but not the folders above it
	Suffix string // of its name
	Bytes  int64
	Build  string // the library's version
	Lower  string // what the user does to have fewer bytes, as "lower X, or "; "": nothing
	Fill   func(mem []byte)
}

// File is a new one, mapped, under its final name.
type File struct {
	Path string
	Mem  []byte
}

// Create makes a file. It has its room on the disk from the beginning: a page for
// which there is none would end the process when it is written. Nobody else may read
// it, and nobody finds it under its name before Fill has written what is not the
// process's.
func Create(s Spec) (*File, error) {
	var drawn [format.IDLen]byte
	if _, err := rand.Read(drawn[:]); err != nil {
		return nil, fmt.Errorf("no random name: %w", err)
	}
	var most unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_FSIZE, &most) == nil && uint64(s.Bytes) > most.Cur {
		return nil, fmt.Errorf("a file of %d bytes is over the process's limit of %d (RLIMIT_FSIZE): %sraise it with ulimit -f", s.Bytes, most.Cur, s.Lower)
	}
	if err := os.Mkdir(s.Dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, fmt.Errorf("%w; WEFT_PROFILE_DIR names another folder", err)
	}
	host := node.Name()
	name := fmt.Sprintf("weft-%s-%d-%x%s", strings.Map(plain, host), os.Getpid(), drawn[:4], s.Suffix)
	f := &File{Path: filepath.Join(s.Dir, name)}
	hidden := filepath.Join(s.Dir, "."+name)
	if err := f.fill(hidden, s); err != nil {
		_ = unix.Unlink(hidden)
		return nil, err
	}
	head(f.Mem, drawn, host, s.Build)
	s.Fill(f.Mem)
	if err := os.Rename(hidden, f.Path); err != nil {
		_ = unix.Unlink(hidden)
		_ = unix.Munmap(f.Mem)
		return nil, err
	}
	return f, nil
}

// Remove gives up a file that its process does not write after all.
func (f *File) Remove() {
	_ = unix.Munmap(f.Mem)
	_ = unix.Unlink(f.Path)
}

// fill makes the file, reserves its room and maps it.
func (f *File) fill(name string, s Spec) error {
	fd, err := unix.Open(name, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return &os.PathError{Op: "create", Path: name, Err: err}
	}
	defer unix.Close(fd)
	if err := reserve(fd, s.Bytes); err != nil {
		return fmt.Errorf("no room for %d MiB in %s: %w; %sname another folder with WEFT_PROFILE_DIR", s.Bytes>>20, s.Dir, err, s.Lower)
	}
	f.Mem, err = unix.Mmap(fd, 0, int(s.Bytes), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return fmt.Errorf("mmap of %d bytes of %s: %w", s.Bytes, name, err)
	}
	return nil
}

// reserve has zeroes written where the file system cannot reserve.
func reserve(fd int, bytes int64) error {
	for {
		err := unix.Fallocate(fd, 0, 0, bytes)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case !errors.Is(err, syscall.EOPNOTSUPP) && !errors.Is(err, syscall.ENOSYS):
			return err
		}
		break
	}
	zeroes := make([]byte, 1<<20)
	for at := int64(0); at < bytes; {
		n, err := unix.Pwrite(fd, zeroes[:min(bytes-at, int64(len(zeroes)))], at)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil {
			return err
		}
		at += int64(n)
	}
	return nil
}

// plain keeps a host's name from being a path.
func plain(r rune) rune {
	if r == '/' || r <= ' ' || r == 0x7f {
		return '_'
	}
	return r
}
