// Command gen turns headers/ and gen/rules into every zz_ file:
//
//	go run ./gen              regenerate everything
//	go run ./gen -check       fail if that would change anything
//	go run ./gen drop SRC     import a header or a folder of headers
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"weft/gen/drop"
	"weft/gen/emit"
	"weft/gen/output"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "gen:", err)
		}
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("gen", flag.ContinueOnError)
	check := flags.Bool("check", false, "change nothing; fail if anything would change")
	dir := flags.String("root", "", "root of the repository (default: the nearest folder above with go.mod)")
	flags.Usage = func() {
		fmt.Fprintln(flags.Output(), "usage: gen [-root DIR] [-check]\n       gen [-root DIR] drop HEADER|FOLDER")
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		return err
	}
	root, err := findRoot(*dir)
	if err != nil {
		return err
	}
	switch {
	case flags.NArg() == 0:
		return regenerate(root, *check, out)
	case flags.NArg() == 2 && flags.Arg(0) == "drop" && !*check:
		return drop.Run(root, flags.Arg(1), out)
	}
	flags.Usage()
	return flag.ErrHelp
}

// regenerate writes every generated file, or checks that all are up to date.
func regenerate(root string, check bool, out io.Writer) error {
	files, err := everything(os.DirFS(root))
	if err != nil {
		return err
	}
	if check {
		if err := output.Check(root, files); err != nil {
			return fmt.Errorf("generated files are not up to date; run `make regen`:\n%w", err)
		}
		return nil
	}
	if err := emit.TypeCheck(root, files); err != nil {
		return err
	}
	undecided, err := emit.Undecided(os.DirFS(root), files)
	if err != nil {
		return err
	}
	touched, err := output.Write(root, files)
	for _, p := range touched {
		fmt.Fprintln(out, p)
	}
	if len(undecided) > 0 {
		fmt.Fprintln(out, "\nto decide before the tables are released (VERSIONING.md lists it too):")
	}
	for _, l := range undecided {
		fmt.Fprintln(out, "-", l)
	}
	return err
}

// findRoot returns the folder that holds the module.
func findRoot(dir string) (string, error) {
	if dir != "" {
		return dir, nil
	}
	wd, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the repository: %w", err)
	}
	for d := wd; ; d = filepath.Dir(d) {
		if _, err := os.Stat(filepath.Join(d, "go.mod")); err == nil {
			return d, nil
		}
		if d == filepath.Dir(d) {
			return "", fmt.Errorf("find the repository: no go.mod in %s or above; use -root", wd)
		}
	}
}
