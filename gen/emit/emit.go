// Package emit writes what the plan says: Go by jennifer, C and Markdown by
// text/template. The same plan always gives the same bytes.
package emit

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"text/template"

	"weft/gen/model"
	"weft/gen/output"
	"weft/gen/parse"
	"weft/gen/plan"
	"weft/gen/rules"
)

// tree is contents by path, relative to the root of the repository.
type tree map[string][]byte

// Files gives everything that follows from the headers in u, and from the
// rules and the fast prototypes under root.
func Files(u *model.Unit, root fs.FS) ([]output.File, error) {
	p, err := Plan(u, root)
	if err != nil {
		return nil, err
	}
	out := tree{}
	for _, emit := range []func(*plan.Plan, tree) error{mirrors, tables, interfaces, slowHeader, exports, exportMap, compat, chains, hostTables, hostVersions, served} {
		if err := emit(p, out); err != nil {
			return nil, err
		}
	}
	if err := errors.Join(matrix(p, root, out), readme(p, root, out)); err != nil {
		return nil, err
	}
	var files []output.File
	for _, name := range sorted(out) {
		files = append(files, output.File{Path: name, Data: out[name]})
	}
	return files, nil
}

// Plan plans the headers in u by the rules and the fast prototypes under root.
func Plan(u *model.Unit, root fs.FS) (*plan.Plan, error) {
	dir, err := fs.Sub(root, "gen/rules")
	if err != nil {
		return nil, fmt.Errorf("emit: %w", err)
	}
	set, err1 := rules.LoadFS(dir, "gen/rules")
	fast, err2 := parse.Fastpath(root, "transport/fastpath/fastpath.h")
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	return plan.Build(u, fast, set)
}

func execute(out tree, name, text string, data any) error {
	t, err := template.New(name).Parse(text)
	if err != nil {
		return fmt.Errorf("emit %s: %w", name, err)
	}
	var b strings.Builder
	if err := t.Execute(&b, data); err != nil {
		return fmt.Errorf("emit %s: %w", name, err)
	}
	out[name] = []byte(b.String())
	return nil
}
