package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A line of a block for a shell, in a page. How it is run is said in a comment before the block, by one word for all its lines or,
// between bars, one for each: "on: node1" (TestPages runs it there, word by word), "run by: TestName" or "run by: make target",
// "not run: reason".
type shown struct {
	page, command string
	kind, how     string // "on", "node1"
}

var (
	fence     = regexp.MustCompile("^ *```(.*)$")
	howItRuns = regexp.MustCompile(`^ *<!-- (.*) -->$`)
	oneWay    = regexp.MustCompile(`^(on|run by|not run): (.+)$`)
)

// shownIn are the commands of a page, in their order.
func shownIn(t *testing.T, page string) (all []shown) {
	t.Helper()
	text, err := os.ReadFile("../../" + page)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	for i := 1; i < len(lines); i++ {
		open := fence.FindStringSubmatch(lines[i])
		if open == nil {
			continue
		}
		at, said := fmt.Sprintf("%s:%d", page, i+1), howItRuns.FindStringSubmatch(lines[i-1])
		first := len(all)
		for i++; fence.FindString(lines[i]) == ""; i++ {
			if open[1] == "sh" {
				all = append(all, shown{page: page, command: strings.TrimSpace(lines[i])})
			}
		}
		if open[1] != "sh" {
			continue
		}
		if said == nil {
			t.Fatalf("%s: the line before it does not say how the block is run", at)
		}
		ways := strings.Split(said[1], " | ")
		if len(ways) > 1 && len(ways) != len(all)-first {
			t.Fatalf("%s: %d lines, and %d ways to run them", at, len(all)-first, len(ways))
		}
		for j := range all[first:] {
			way := oneWay.FindStringSubmatch(ways[j%len(ways)])
			if way == nil {
				t.Fatalf("%s: what is %q?", at, ways[j%len(ways)])
			}
			all[first+j].kind, all[first+j].how = way[1], way[2]
		}
	}
	return all
}

// outputsIn are the lines that a page shows of what programs say: of the blocks that name no language.
func outputsIn(t *testing.T, page string) (lines []string) {
	t.Helper()
	text, err := os.ReadFile("../../" + page)
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range regexp.MustCompile("(?ms)^```(\\w*)\n(.*?)^```$").FindAllStringSubmatch(string(text), -1) {
		if block[1] == "" {
			lines = append(lines, strings.Split(strings.TrimSuffix(block[2], "\n"), "\n")...)
		}
	}
	return lines
}

var figures = regexp.MustCompile(`[0-9]+`)

// sameButFigures finds a line, whatever its figures are.
func sameButFigures(line string) *regexp.Regexp {
	return regexp.MustCompile(`(?m)^` + figures.ReplaceAllString(regexp.QuoteMeta(line), "[0-9]+") + `$`)
}

// pages are the files whose commands are run.
func pages(t *testing.T) []string {
	t.Helper()
	names, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	names = append(names, "../../README.md")
	for i := range names {
		names[i] = strings.TrimPrefix(names[i], "../../")
	}
	return names
}

// The commands that nothing runs. Whoever adds one says why, here and in the page.
var notRun = []string{
	"README.md: git clone -b v2.30.7-1 https://github.com/NVIDIA/nccl /tmp/nccl      # any release from 2.4 on",
	"README.md: make test-nccl NCCL_SRC=/tmp/nccl                                    # several: NCCL_SRC=TREE:TREE",
	"docs/install.md: make packages PACK_ARCHS=arm64",
	"docs/install.md: make test-glibc GLIBC_SRC=TREE  # use the archive on glibc 2.28 alone, built from a checkout of it",
	"docs/quickstart.md: docker run --network host --device /dev/infiniband --ulimit memlock=-1 -v /opt/weft:/opt/weft:ro -e LD_LIBRARY_PATH=/opt/weft/lib -e NCCL_NET_PLUGIN=weft IMAGE",
	"docs/release.md: make release KEY=you@example.org",
	"docs/release.md: gpg --verify SHA256SUMS.asc SHA256SUMS && sha256sum -c SHA256SUMS",
}

// Each command of the pages is run, by what is there, or stands in the list above.
func TestCommandsAreRun(t *testing.T) {
	tests, machines := texts(t, "../..", "_test.go"), texts(t, "../../.ci", "run")+texts(t, "../../.github", ".yml")
	left := slices.Clone(notRun)
	for _, page := range pages(t) {
		for _, s := range shownIn(t, page) {
			line := page + ": " + s.command
			switch s.kind {
			case "on":
				if page != "docs/quickstart.md" && !slices.ContainsFunc(scenes, func(s scene) bool { return s.page == page }) {
					t.Errorf("%s: no test plays the page", line)
				}
			case "not run":
				i := slices.Index(left, line)
				if i < 0 {
					t.Errorf("%s: nothing runs it, and it is not in the list", line)
					continue
				}
				left = slices.Delete(left, i, i+1)
			case "run by":
				for name := range strings.SplitSeq(s.how, ", ") {
					there := strings.Contains(tests, "\nfunc "+name+"(t *testing.T)")
					if target, made := strings.CutPrefix(name, "make "); made {
						there = regexp.MustCompile(`(?m)\bmake( [a-z-]+)*? ` + target + `( |$)`).MatchString(machines)
					}
					if !there {
						t.Errorf("%s: there is no %s that is run", line, name)
					}
				}
			}
		}
	}
	for _, line := range left {
		t.Errorf("%s: it is run, or gone", line)
	}
}

// texts are all files of a folder whose names end so.
func texts(t *testing.T, dir, end string) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == ".cache" || d.Name() == "dist"):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, end):
			return nil
		}
		text, err := os.ReadFile(path)
		all.Write(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}
