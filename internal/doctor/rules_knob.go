package doctor

import (
	"strings"

	"weft/internal/knob"
)

// knobRules: variables, wherever they were set.
var knobRules = []Rule{
	{
		Code: "WEFT-012", Topic: confTopic, Severity: Slows,
		Title:       "NCCL_IB_DISABLE keeps RDMA out on a machine with cards",
		Symptom:     "everything goes over TCP, at a fraction of the line's rate",
		Consequence: "weft, like NCCL, uses no RDMA device",
		check: func(x *Exam) []Finding {
			s := x.set("NCCL_IB_DISABLE")
			values := x.knobs
			if values.Int(knob.IBDisable) == 0 || len(x.Cards()) == 0 {
				return nil
			}
			return seen("NCCL_IB_DISABLE", "NCCL_IB_DISABLE=%s (%s), and there is %s", s.Value, s.From, x.Cards()[0].Name).with("NCCL_IB_DISABLE", "0").mend("%s", s.Undo).one()
		},
	},
	{
		Code: "WEFT-013", Topic: confTopic, Severity: Slows,
		Title:       "a variable that nobody reads, or a value that is not legal",
		Symptom:     "a setting has no effect",
		Consequence: "the default is used instead",
		check: func(x *Exam) (all []Finding) {
			for _, problem := range x.knobs.Problems() {
				name, _, _ := strings.Cut(problem, " ")
				name, _, _ = strings.Cut(name, "=")
				s := x.set(name)
				all = append(all, seen(name, "%s (%s)", problem, s.From).mend("%s, or set it as docs/knobs.md has it", s.Undo))
			}
			return all
		},
	},
}
