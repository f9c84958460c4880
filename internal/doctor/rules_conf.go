package doctor

import (
	"strings"

	"weft/internal/doctor/machine"
)

const confTopic = "Settings"

// confRules: the files that NCCL reads into its environment.
var confRules = []Rule{
	{
		Code: "WEFT-007", Topic: confTopic, Severity: Breaks,
		Title:       "LD_LIBRARY_PATH stands in a file of NCCL's",
		Symptom:     "the plugin is not found, though nccl.conf says where it is",
		Consequence: "the loader reads it when a process starts, NCCL sets it later: nothing is found by it",
		check: func(x *Exam) (all []Finding) {
			for _, l := range x.ConfLines() {
				if l.Name == "LD_LIBRARY_PATH" {
					all = append(all, seen(l.File, "%s, line %d: %s", l.File, l.Number, l.Text).
						mend("export %s where the job is started", strings.TrimSpace(l.Text)))
				}
			}
			return all
		},
	},
	{
		Code: "WEFT-008", Topic: confTopic, Severity: Breaks,
		Title:       "a line of NCCL's files is read otherwise than it looks",
		Symptom:     "a setting in nccl.conf has no effect",
		Consequence: "NCCL takes blanks, quotes, `export` and carriage returns as part of the name or the value",
		check: func(x *Exam) (all []Finding) {
			for _, l := range x.ConfLines() {
				name, value := plainLine(l)
				if name == l.Name && value == l.Value {
					continue
				}
				all = append(all, seen(l.File, "%s, line %d: %q sets the variable %q to %q", l.File, l.Number, l.Text, l.Name, l.Value).
					mend("write it as %s=%s", name, value))
			}
			return all
		},
	},
}

// plainLine is what the line's writer meant.
func plainLine(l machine.ConfLine) (name, value string) {
	name = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(l.Name), "export "))
	return name, strings.Trim(strings.TrimSpace(l.Value), `"'`)
}
