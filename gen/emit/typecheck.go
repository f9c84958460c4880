package emit

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/tools/go/packages"

	"weft/gen/model"
	"weft/gen/output"
)

// TypeCheck checks the Go among files as if they were in the tree at root
// already, so that nothing is written that does not compile.
func TypeCheck(root string, files []output.File) error {
	overlay := map[string][]byte{}
	old, err := filepath.Glob(filepath.Join(root, "abi", "zz_*.go"))
	if err != nil {
		return fmt.Errorf("type check: %w", err)
	}
	for _, name := range old { // what is generated no more must not count
		if name, err = filepath.Abs(name); err != nil {
			return fmt.Errorf("type check: %w", err)
		}
		overlay[name] = []byte("package abi\n")
	}
	var exports []byte
	for _, f := range files {
		switch {
		case f.Path == "plugin/zz_exports.go":
			exports = f.Data
		case strings.HasPrefix(f.Path, "abi/"):
			name, err := filepath.Abs(filepath.Join(root, filepath.FromSlash(f.Path)))
			if err != nil {
				return fmt.Errorf("type check: %w", err)
			}
			overlay[name] = f.Data
		}
	}
	pkgs, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedSyntax | packages.NeedTypes | packages.NeedImports,
		Dir:  root, Overlay: overlay, Env: append(os.Environ(), "CGO_ENABLED=0"),
	}, "./abi")
	if err != nil {
		return fmt.Errorf("type check abi: %w", err)
	}
	var errs []error
	for _, p := range pkgs {
		for _, e := range p.Errors {
			errs = append(errs, fmt.Errorf("type check abi: %w", e))
		}
	}
	if len(errs) > 0 || len(pkgs) != 1 {
		return errors.Join(errs...)
	}
	return typeCheckExports(exports, pkgs[0].Types)
}

// offered stands for what the plugin writes by hand.
func offered(abi *types.Package) string {
	text := `package plugin
import "weft/abi"
func done(call string, err error) int32
func recovered(call string, r any) int32
`
	for _, f := range model.Families {
		if abi.Scope().Lookup(f.Go()) != nil {
			text += fmt.Sprintf("func %sImpl() abi.%s\n", f.C(), f.Go())
		}
	}
	return text
}

// only imports what it holds, by path.
type only map[string]*types.Package

func (o only) Import(path string) (*types.Package, error) {
	if p := o[path]; p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("zz_exports.go should not import %q", path)
}

// typeCheckExports checks plugin/zz_exports.go without running cgo: what it
// takes from C is checked by the C compiler, when the plugin is built.
func typeCheckExports(text []byte, abi *types.Package) error {
	fset := token.NewFileSet()
	var parsed []*ast.File
	for name, src := range map[string][]byte{"plugin/zz_exports.go": text, "offered.go": []byte(offered(abi))} {
		f, err := parser.ParseFile(fset, name, src, 0)
		if err != nil {
			return fmt.Errorf("type check: %w", err)
		}
		parsed = append(parsed, f)
	}
	var errs []error
	conf := types.Config{
		FakeImportC: true, Importer: only{"unsafe": types.Unsafe, "weft/abi": abi},
		Error: func(err error) { errs = append(errs, fmt.Errorf("type check: %w", err)) },
	}
	conf.Check("weft/plugin", fset, parsed, nil)
	return errors.Join(errs...)
}
