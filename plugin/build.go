package plugin

import (
	"runtime/debug"
)

// Build names this build in messages and to peers: the version of the module,
// or the commit.
var Build = buildName()

func buildName() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "weft"
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return "weft " + s.Value[:12]
		}
	}
	return "weft " + info.Main.Version
}
