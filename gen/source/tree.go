package source

import (
	"io/fs"
	"path"
	"regexp"
	"testing/fstest"
)

// tree opens the headers of a source for the parser.
type tree struct {
	s    *Headers
	made fstest.MapFS // inferred declarations, which count as the source's
}

func (t tree) Open(name string) (fs.File, error) {
	switch p := t.s.find(name); {
	case p != "" && t.s.banned[p] != nil:
		return stubs.Open("stubs/nccl.h") // declares nothing
	case p != "":
		return t.s.fsys.Open(p)
	}
	if f, err := t.made.Open(name); err == nil {
		return f, nil
	}
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

// One is the path of the header that a name opens.
func (t tree) One(name string) string {
	if p := t.s.find(name); p != "" {
		return p
	}
	return name
}

// system serves <...>, and "..." that the tree does not have: stubs, and what
// the plan made.
type system struct {
	s    *Headers
	made fstest.MapFS
}

func (y system) Open(name string) (fs.File, error) {
	if f, err := y.made.Open(name); err == nil {
		return f, nil
	}
	if f, err := stubs.Open(path.Join("stubs", name)); err == nil {
		return f, nil
	}
	if y.s.absent[name] != "" || upstream.MatchString(path.Base(name)) && path.Dir(name) != "sys" {
		return stubs.Open("stubs/nccl.h") // the plan declares what is used of it
	}
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

// upstream are the names of headers that NCCL and its examples have beside a
// header of tables; we hold what the tables need of them.
var upstream = regexp.MustCompile(`^(err|types|common|nccl_common|net_device|net|profiler|tuner|profiler_net|nccl_net|nccl_profiler|nccl_tuner|(net|profiler|tuner|net_ib|net_socket)_v\d+|net_ib|net_socket)\.h$`)

func files(texts map[string]string) fstest.MapFS {
	m := fstest.MapFS{}
	for name, text := range texts {
		m[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return m
}
