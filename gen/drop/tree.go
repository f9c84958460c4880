package drop

import (
	"io/fs"
	"path"
	"testing/fstest"
)

// tree opens the headers of a source for the parser.
type tree struct{ s *source }

func (t tree) Open(name string) (fs.File, error) {
	switch p := t.s.find(name); {
	case p != "" && t.s.banned[p]:
		return stubs.Open("stubs/nccl.h") // declares nothing
	case p != "":
		return t.s.fsys.Open(p)
	}
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

// system serves <...>, and "..." that the tree does not have: stubs, and what
// the plan made.
type system struct{ made fstest.MapFS }

func (y system) Open(name string) (fs.File, error) {
	if f, err := y.made.Open(name); err == nil {
		return f, nil
	}
	if f, err := stubs.Open(path.Join("stubs", name)); err == nil {
		return f, nil
	}
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

func newSystem(p *plan) system {
	made := fstest.MapFS{}
	for name, text := range p.made {
		made[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return system{made}
}
