// Command packages makes .deb, .rpm and .tar.gz of what make has built for one architecture, a list of what is in it (CycloneDX), and
// checksums. The same tree gives the same bytes: times are the commit's.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

func main() {
	var b build
	flag.StringVar(&b.root, "root", ".", "the repository")
	flag.StringVar(&b.dist, "dist", "", "what was built for the architecture, as weftlink lays it out")
	flag.StringVar(&b.pages, "pages", "", "man pages and completions, as the target pages of make lays them out")
	flag.StringVar(&b.out, "o", "", "the folder to write into")
	flag.StringVar(&b.arch, "arch", "", "amd64 or arm64")
	flag.StringVar(&b.version, "version", "", "such as 0.1.0 or 0.2.0-dev")
	epoch := flag.Int64("epoch", 0, "the time of all files, in seconds since 1970")
	flag.Parse()
	b.time = time.Unix(*epoch, 0).UTC()
	if err := b.run(); err != nil {
		fmt.Fprintln(os.Stderr, "packages:", err)
		os.Exit(1)
	}
}

// build is what packages are made of, and for which architecture.
type build struct {
	root, dist, pages, out, arch, version string
	time                                  time.Time
}

func (b *build) run() error {
	for _, given := range []struct{ flag, value string }{{"dist", b.dist}, {"pages", b.pages}, {"o", b.out}, {"arch", b.arch}, {"version", b.version}} {
		if given.value == "" {
			return fmt.Errorf("-%s is missing", given.flag)
		}
	}
	if err := os.MkdirAll(b.out, 0o755); err != nil {
		return err
	}
	made, err := os.MkdirTemp("", "weft-packages-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(made)
	bill := filepath.Join(made, "weft.cdx.json")
	if err := b.writeBill(bill); err != nil {
		return fmt.Errorf("the list of components: %w", err)
	}
	var main []entry
	for _, format := range []string{"deb", "rpm"} {
		if main, err = b.files(format, made, bill); err != nil {
			return err
		}
		for _, p := range []pack{{"weft", main}, {"weft-default", links(b.libraries(format), unnamed)}} {
			if err := b.pack(format, p); err != nil {
				return fmt.Errorf("%s as %s: %w", p.name, format, err)
			}
		}
	}
	if err := b.tarball(append(main, links(b.libraries("rpm"), unnamed)...)); err != nil {
		return fmt.Errorf("tar.gz: %w", err)
	}
	text, err := os.ReadFile(bill)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(b.out, fmt.Sprintf("weft-%s-linux-%s.cdx.json", b.version, b.arch)), text, 0o644)
}

// plain is the version without what is behind its dash, and that.
func (b *build) plain() (version, before string) {
	version, before, _ = strings.Cut(b.version, "-")
	return version, before
}
