// Package version names this build: the release, and the commit that it was built from, where the build knows it.
package version

// release changes by hand, with a release.
const release = "0.1.0-dev"

// commit is what git describe says of the tree, set by the linker (internal/link). The same commit gives the same library.
var commit string

// String is such as "weft 0.1.0-dev (b2351fc7a4c1)".
func String() string {
	if commit == "" {
		return "weft " + release
	}
	return "weft " + release + " (" + commit + ")"
}
