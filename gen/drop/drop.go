// Package drop imports foreign headers: it compares what a header, or a folder
// of them, declares with what we hold, and restates tables that are new in
// headers/nccl. No text of the source is copied.
package drop

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sort"
	"strings"
	"testing/fstest"

	"weft/gen/lock"
	"weft/gen/model"
	"weft/gen/output"
	"weft/gen/parse"
	"weft/gen/source"
)

// Run imports src, a header or a folder, into the repository at root, and
// tells out what it found. Nothing is written if a known version changed.
func Run(root, src string, out io.Writer) error {
	s, err := source.Open(src)
	if err != nil {
		return fmt.Errorf("drop: %w", err)
	}
	files, err := Import(os.DirFS(root), s, out)
	if err != nil {
		return err
	}
	for _, f := range files {
		name := filepath.Join(root, filepath.FromSlash(f.Path))
		if err := output.Replace(name, f.Data); err != nil {
			return fmt.Errorf("drop: %w", err)
		}
		fmt.Fprintln(out, "wrote", f.Path)
	}
	if len(files) > 0 {
		fmt.Fprintln(out, "now run `make regen`")
	}
	return nil
}

// Import compares a source with the headers of the repository at root and
// returns the files to write.
func Import(root fs.FS, s *source.Headers, out io.Writer) ([]output.File, error) {
	headers, err := fs.Sub(root, "headers")
	if err != nil {
		return nil, fmt.Errorf("drop: %w", err)
	}
	ours, err := parse.NCCL(headers)
	if err != nil {
		return nil, err
	}
	theirs, err := s.Parse(ours)
	if err == nil && len(theirs.Tables) == 0 {
		err = source.ErrNoTable
	}
	if err != nil {
		return nil, fmt.Errorf("drop: %w", err)
	}
	drifts, err := Drifts(root)
	if err != nil {
		return nil, err
	}
	limits, err := limitsOf(root)
	if err != nil {
		return nil, err
	}
	rep := compare(ours, theirs, drifts, limits)
	rep.notes = append(rep.notes, s.Notes()...)
	rep.print(out)
	if len(rep.broken) > 0 {
		return nil, &lock.BrokenError{Changes: rep.broken}
	}
	texts := restate(ours, theirs)
	if len(texts) == 0 && len(rep.grown) == 0 {
		return nil, nil // macros alone are noted
	}
	if err := rep.growAll(headers, texts); err != nil {
		return nil, err
	}
	return verified(headers, theirs, texts, drifts)
}

// verified parses the headers as they would be, requires the restated tables
// to be what the source declares, and adds LOCK.
func verified(headers fs.FS, theirs *model.Unit, texts map[string]string, drifts []lock.Drift) ([]output.File, error) {
	after := fstest.MapFS{}
	err := fs.WalkDir(headers, "nccl", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := fs.ReadFile(headers, p)
		after[p] = &fstest.MapFile{Data: b}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("drop: %w", err)
	}
	var files []output.File
	for p, text := range texts {
		after[p] = &fstest.MapFile{Data: []byte(text)}
		files = append(files, output.File{Path: path.Join("headers", p), Data: []byte(text)})
	}
	sort.Slice(files, func(i, j int) bool { return files[i].Path < files[j].Path })
	unit, err := parse.NCCL(after)
	if err != nil {
		return nil, fmt.Errorf("drop: the restated header does not parse; the source declares what we cannot restate:\n%w", err)
	}
	for p := range texts {
		if _, err := parse.Headers(parse.Options{FS: after, Headers: []string{p}, Arch: parse.Arches[0]}); err != nil {
			return nil, fmt.Errorf("drop: the restated %s does not stand alone:\n%w", p, err)
		}
	}
	lines := lock.Of(unit)
	mine, want := byType(lines), byType(lock.Of(theirs))
	for name := range mine {
		if w := want[name]; w != nil && model.FamilyType.MatchString(name) {
			for _, c := range differences(unit, theirs, name, mine[name], w) {
				if c.Kind != lock.Respelled && !lock.Covered(c, drifts) {
					return nil, fmt.Errorf("drop: the restated header differs from its source: %v", c)
				}
			}
		}
	}
	old, err := ReadLock(headers)
	if err != nil {
		return nil, err
	}
	merged, err := lock.Merge(old, lines, drifts)
	if err != nil {
		return nil, err
	}
	return append(files, output.File{Path: LockPath, Data: lock.Format(merged)}), nil
}

// print says what was found, type by type.
func (rep *report) print(out io.Writer) {
	for _, v := range rep.verdicts {
		fmt.Fprintf(out, "%-11s %s (%s)\n", v.Status, v.Type, v.Pos.File)
		for _, c := range v.Changes {
			how := ""
			if c.Kind == lock.Respelled {
				how = " (the same in other words)"
			}
			fmt.Fprintf(out, "            %s%s\n", strings.TrimPrefix(c.String(), v.Type+"."), how)
		}
	}
	for _, n := range rep.notes {
		fmt.Fprintln(out, "note:", n)
	}
}
