package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"weft/internal/link"
)

// programsIn names the programs of a folder.
func programsIn(dir string) programs {
	dist := link.Dist(dir)
	return programs{lib: dist.Library(), host: dist.Program("weft-host"), sim: filepath.Join(dir, "simverbs"), scratch: os.TempDir()}
}

func (p programs) built() bool {
	_, err := os.Stat(p.lib)
	return err == nil
}

// compile makes library, host and simulated libibverbs in dir, under the address sanitizer unless plain.
func compile(dir string, plain bool) error {
	mode, san := "asan", "SIM_SAN=-fsanitize=address -fno-omit-frame-pointer"
	if plain {
		mode, san = "release", "SIM_SAN="
	}
	if err := do("", "make", "-s", "SIM_DIST="+programsIn(dir).sim, san, "simverbs"); err != nil {
		return err
	}
	return do("", "go", "run", "./internal/link/weftlink", "-mode", mode, "-o", dir)
}

func do(dir string, args ...string) error {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = dir
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(args, " "), err, text)
	}
	return nil
}

// target is a Go fuzz test in a program of its own.
type target struct {
	pkg, name string
	bin       string // runs in the folder dir, which has a copy of the package's testdata
	dir       string
}

// decoders builds the fuzz tests of every package.
func decoders(dir string) ([]target, error) {
	text, err := exec.Command("go", "list", "-f", `{{.ImportPath}} {{.Dir}} {{join .TestGoFiles ","}},{{join .XTestGoFiles ","}}`, "./...").Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	var all []target
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		names, err := fuzzers(f[1], strings.Split(f[2], ","))
		if err != nil {
			return nil, err
		}
		if len(names) == 0 {
			continue
		}
		t := target{pkg: f[0], dir: filepath.Join(dir, strings.ReplaceAll(f[0], "/", "_"))}
		t.bin = filepath.Join(t.dir, "fuzz.test")
		if err := os.MkdirAll(t.dir, 0o755); err != nil {
			return nil, err
		}
		if err := do("", "go", "test", "-c", "-fuzz=.", "-o", t.bin, t.pkg); err != nil {
			return nil, err
		}
		if _, err := os.Stat(filepath.Join(f[1], "testdata")); err == nil {
			if err := os.CopyFS(filepath.Join(t.dir, "testdata"), os.DirFS(filepath.Join(f[1], "testdata"))); err != nil {
				return nil, err
			}
		}
		for _, t.name = range names {
			all = append(all, t)
		}
	}
	return all, nil
}

// fuzzers are the names of the fuzz tests in a package's files.
func fuzzers(dir string, files []string) (names []string, err error) {
	for _, file := range files {
		if file == "" {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(string(text)) {
			if rest, ok := strings.CutPrefix(line, "func Fuzz"); ok {
				name, _, _ := strings.Cut(rest, "(")
				names = append(names, "Fuzz"+name)
			}
		}
	}
	return names, nil
}
