package image

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// metaPackage depends on the kernel that a Debian release considers current.
const metaPackage = "linux-image-amd64"

// apt runs apt's tools for one user: with the system's own lists, or with lists and sources that lie in dir alone.
type apt struct {
	get, cache string
	dir        string // of private lists, empty for the system's
	sources    string // a sources.list instead of the system's
	note       func(string, ...any)
}

func (a *apt) options() []string {
	if a.dir == "" {
		return nil
	}
	o := []string{"-o", "Dir::State::Lists=" + filepath.Join(a.dir, "lists"), "-o", "Dir::Cache=" + filepath.Join(a.dir, "cache")}
	if a.sources != "" {
		o = append(o, "-o", "Dir::Etc::SourceList="+a.sources, "-o", "Dir::Etc::SourceParts=-")
	}
	return o
}

func (a *apt) run(ctx context.Context, dir, program string, args ...string) (string, error) {
	return output(ctx, dir, program, append(a.options(), args...)...)
}

// output runs a program in a folder and returns what it prints.
func output(ctx context.Context, dir, program string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "LC_ALL=C")
	var out, says bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &says
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return "", fmt.Errorf("%s %s: %w: %s", filepath.Base(program), strings.Join(args, " "), err, lastLines(says.String(), 3))
	}
	return out.String(), nil
}

func lastLines(s string, n int) string {
	l := strings.Split(strings.TrimSpace(s), "\n")
	return strings.Join(l[max(0, len(l)-n):], "; ")
}

var dependsOnKernel = regexp.MustCompile(`(?m)^\s*Depends: (linux-image-([0-9]+\.[0-9]+)\S*)`)

// errNoPackage says what apt offers instead of a kernel of the wanted version.
type errNoPackage struct{ want, have string }

func (e *errNoPackage) Error() string {
	if e.have == "" {
		return fmt.Sprintf("apt knows no package %s (kernel %s is wanted)", metaPackage, e.want)
	}
	return fmt.Sprintf("apt offers %s, and kernel %s is wanted (--kernel chooses)", e.have, e.want)
}

// kernelPackage names the package of a version such as 6.1: what the meta package depends on, for apt-cache show lists old ones too.
func (a *apt) kernelPackage(ctx context.Context, version string) (string, error) {
	out, err := a.run(ctx, "", a.cache, "depends", metaPackage)
	if err != nil {
		if ctx.Err() != nil {
			return "", err
		}
		return "", &errNoPackage{want: version}
	}
	have := &errNoPackage{want: version}
	for _, m := range dependsOnKernel.FindAllStringSubmatch(out, -1) {
		if m[2] == version {
			return m[1], nil
		}
		have.have = m[1]
	}
	return "", have
}

// fetch downloads the kernel package of a version into dir and returns the file. apt checks it against the signed lists.
// When the system's lists are old or have no such kernel, lists of our own are fetched below dir, then of the backports.
func (a *apt) fetch(ctx context.Context, version, dir string) (string, error) {
	tries := []func() error{
		func() error { return nil },
		func() error { return a.private(ctx, filepath.Join(dir, "own"), "") },
		func() error {
			file, err := a.backports(ctx, dir)
			if err != nil {
				return err
			}
			return a.private(ctx, filepath.Join(dir, "backports"), file)
		},
	}
	var errs []error
	for _, prepare := range tries {
		err := prepare()
		if err == nil {
			var file string
			if file, err = a.download(ctx, version, dir); err == nil {
				return file, nil
			}
		}
		if ctx.Err() != nil {
			return "", err
		}
		errs = append(errs, err)
	}
	return "", fmt.Errorf("no kernel package could be had: %w", errors.Join(errs...))
}

func (a *apt) download(ctx context.Context, version, dir string) (string, error) {
	name, err := a.kernelPackage(ctx, version)
	if err != nil {
		return "", err
	}
	a.note("downloading %s", name)
	if _, err := a.run(ctx, dir, a.get, "-q", "download", name); err != nil {
		return "", err
	}
	files, err := filepath.Glob(filepath.Join(dir, name+"_*.deb"))
	if err != nil || len(files) != 1 {
		return "", fmt.Errorf("apt-get download %s left %d packages in %s", name, len(files), dir)
	}
	return files[0], nil
}

// private turns to lists that lie in dir, and fetches them.
func (a *apt) private(ctx context.Context, dir, sources string) error {
	a.dir, a.sources = dir, sources
	for _, d := range []string{"lists/partial", "cache/archives/partial"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			return err
		}
	}
	a.note("asking apt for its lists (they stay in the cache of weft)")
	_, err := a.run(ctx, "", a.get, "-q", "update")
	return err
}

// backports writes a sources.list with the backports of the release that this system uses, at the place from which it has that release.
func (a *apt) backports(ctx context.Context, dir string) (string, error) {
	a.dir, a.sources = "", ""
	out, err := a.run(ctx, "", a.get, "indextargets", "--format", "$(ORIGIN)|$(REPO_URI)|$(CODENAME)|$(COMPONENT)|$(SIGNED_BY)", "Created-By: Packages")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(out) {
		f := strings.Split(strings.TrimSpace(line), "|")
		if len(f) != 5 || f[0] != "Debian" || f[3] != "main" || strings.Contains(f[2], "-") {
			continue
		}
		key := f[4]
		if !strings.HasPrefix(key, "/") {
			key = "/usr/share/keyrings/debian-archive-keyring.gpg"
		}
		text := fmt.Sprintf("deb [signed-by=%s] %s %s-backports main\n", key, f[1], f[2])
		file := filepath.Join(dir, "backports.list")
		return file, os.WriteFile(file, []byte(text), 0o644)
	}
	return "", fmt.Errorf("apt's sources name no release of Debian whose backports could have that kernel")
}
