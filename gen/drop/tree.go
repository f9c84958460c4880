package drop

import (
	"io/fs"
	"path"
	"strings"
)

// tree opens headers of a source by the path that an #include makes of its
// own folder and the name it asks for. NCCL is built with several -I, so what
// is not there is looked up by ever shorter endings, then anywhere.
type tree struct{ s *source }

func (t tree) Open(name string) (fs.File, error) {
	if f, err := t.s.fsys.Open(name); err == nil {
		return f, nil
	}
	for rest := name; ; {
		if _, ok := t.s.texts[rest]; ok {
			return t.s.fsys.Open(rest)
		}
		i := strings.IndexByte(rest, '/')
		if i < 0 {
			break
		}
		rest = rest[i+1:]
	}
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

// system serves <...>, and "..." that the tree does not have.
type system struct{ s *source }

func (y system) Open(name string) (fs.File, error) {
	if f, err := stubs.Open(path.Join("stubs", name)); err == nil {
		return f, nil
	}
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}
