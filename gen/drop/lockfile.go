package drop

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"weft/gen/lock"
	"weft/gen/rules"
)

// LockPath is where the fingerprints are, from the root of the repository.
const LockPath = "headers/LOCK"

// ReadLock reads LOCK from the folder of headers; none is an empty one.
func ReadLock(headers fs.FS) ([]lock.Line, error) {
	b, err := fs.ReadFile(headers, "LOCK")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", LockPath, err)
	}
	return lock.Parse(LockPath, b)
}

func ruleSet(root fs.FS) (*rules.Set, error) {
	dir, err := fs.Sub(root, "gen/rules")
	if err != nil {
		return nil, fmt.Errorf("read rules: %w", err)
	}
	return rules.LoadFS(dir, "gen/rules")
}

// Drifts returns the drift rules under gen/rules of the repository at root.
// Each must name a member that we hold.
func Drifts(root fs.FS) ([]lock.Drift, error) {
	set, err := ruleSet(root)
	if err != nil {
		return nil, err
	}
	headers, err := fs.Sub(root, "headers")
	if err != nil {
		return nil, fmt.Errorf("read drift rules: %w", err)
	}
	lines, err := ReadLock(headers)
	if err != nil {
		return nil, err
	}
	var ds []lock.Drift
	for _, r := range set.Verb("drift") {
		d := lock.Drift{Stem: r.Stem, Lo: r.Lo, Hi: r.Hi, Field: r.Param, Type: r.Words[0], How: r.Words[1], Pos: r.Pos()}
		if d.How != lock.LowByte && d.How != lock.SameBits {
			return nil, fmt.Errorf("%s: drift: %q is neither %s nor %s", d.Pos, d.How, lock.LowByte, lock.SameBits)
		}
		if len(lines) > 0 && !names(lines, d) {
			return nil, fmt.Errorf("%s: drift matches nothing: no %s of %s has a member %s", d.Pos, strings.ReplaceAll(rules.Versions(d.Lo, d.Hi), "all", "version"), d.Stem, d.Field)
		}
		ds = append(ds, d)
	}
	return ds, nil
}

func names(lines []lock.Line, d lock.Drift) bool {
	for _, l := range lines {
		if lock.Stem(l.Struct) == d.Stem && l.Field == d.Field && d.Lo <= l.Version && l.Version <= d.Hi {
			return true
		}
	}
	return false
}
