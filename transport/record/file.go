package record

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"weft/transport/record/format"
)

// minBytes are those of a file in which a few threads have room.
const minBytes = format.ChunksAt + 16*format.ChunkBytes

// file is a new one, mapped, under its final name.
type file struct {
	path string
	mem  []byte
}

// create makes a file of about so many bytes in dir, which is made if it is not
// there. It has its room on the disk from the beginning: a page for which there
// is none would end the process when it is written. Nobody else may read it, and
// nobody finds it under its name before it is whole.
func create(dir string, bytes int64, build string) (*file, error) {
	var drawn [format.IDLen]byte
	if _, err := rand.Read(drawn[:]); err != nil {
		return nil, fmt.Errorf("no random name: %w", err)
	}
	chunks := (max(bytes, minBytes) - format.ChunksAt) / format.ChunkBytes
	bytes = format.ChunksAt + chunks*format.ChunkBytes
	var most unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_FSIZE, &most) == nil && uint64(bytes) > most.Cur {
		return nil, fmt.Errorf("a file of %d bytes is over the process's limit of %d (RLIMIT_FSIZE): raise it with ulimit -f, or lower WEFT_PROFILE_SIZE", bytes, most.Cur)
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, fmt.Errorf("%w; WEFT_PROFILE_DIR names another folder", err)
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	name := fmt.Sprintf("weft-%s-%d-%x.rec", strings.Map(plain, host), os.Getpid(), drawn[:4])
	f := &file{path: filepath.Join(dir, name)}
	hidden := filepath.Join(dir, "."+name)
	if err := f.fill(hidden, bytes); err != nil {
		_ = unix.Unlink(hidden)
		return nil, err
	}
	f.head(uint32(chunks), drawn, host, build)
	if err := os.Rename(hidden, f.path); err != nil {
		_ = unix.Unlink(hidden)
		_ = unix.Munmap(f.mem)
		return nil, err
	}
	return f, nil
}

// fill makes the file, reserves its room and maps it.
func (f *file) fill(name string, bytes int64) error {
	fd, err := unix.Open(name, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return &os.PathError{Op: "create", Path: name, Err: err}
	}
	defer unix.Close(fd)
	if err := reserve(fd, bytes); err != nil {
		return fmt.Errorf("no room for %d MiB in %s: %w; lower WEFT_PROFILE_SIZE, or name another folder with WEFT_PROFILE_DIR", bytes>>20, filepath.Dir(name), err)
	}
	f.mem, err = unix.Mmap(fd, 0, int(bytes), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return fmt.Errorf("mmap of %d bytes of %s: %w", bytes, name, err)
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
