package link

import (
	"os/exec"
	"regexp"
	"strings"
)

// commitForm is what may stand among the linker's flags.
var commitForm = regexp.MustCompile(`^[0-9A-Za-z._+/-]{1,100}$`)

// stamp is the linker's flag that puts git describe of the tree into a program, "" where there is no git to ask.
// The length of the commit's name is fixed: it must not depend on how much history a clone has.
func stamp(root string) string {
	cmd := exec.Command("git", "describe", "--tags", "--always", "--abbrev=12", "--dirty")
	cmd.Dir = root
	text, err := cmd.Output()
	commit := strings.TrimSpace(string(text))
	if err != nil || !commitForm.MatchString(commit) {
		return ""
	}
	return "-X weft/internal/version.commit=" + commit + " "
}
