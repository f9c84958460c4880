package drop

import (
	"regexp"

	"weft/gen/lock"
	"weft/gen/model"
	"weft/gen/source"
)

// predecessor finds the comments of the newest version of a type that we hold.
// A function keeps its comment only if it still takes the same parameters.
func predecessor(ours *model.Unit, name string) source.Commenter {
	var best *model.Record
	for _, r := range ours.Records {
		if lock.Stem(r.Name) == lock.Stem(name) && (best == nil || lock.Version(r.Name) > lock.Version(best.Name)) {
			best = r
		}
	}
	return func(f *model.Field) string {
		if best == nil || f.Name == "" {
			return ""
		}
		old, _ := best.Field(f.Name)
		if old == nil || signature(old) != signature(f) {
			return ""
		}
		return old.Doc
	}
}

// signature spells a type without the versions in it.
func signature(f *model.Field) string { return versions.ReplaceAllString(f.Type.String(), "") }

var versions = regexp.MustCompile(`_v\d+`)
