package verbs

import (
	"weft/internal/report"
	"weft/transport/verbs/card"
	"weft/transport/verbs/port"
)

// few joins a list that is bounded: NCCL's log ends a line at 1024 bytes.
func few(list []string, by string) string { return report.Few(list, 12, by) }

// announce says in one line what is used and what is not, and in one line each
// what the devices are.
func announce(l *card.Library, devices []*port.Device, passed []string) {
	var names []string
	for _, d := range devices {
		names = append(names, d.Label())
	}
	without := ""
	if len(passed) > 0 {
		without = "; not " + few(passed, ", ")
	}
	l.Log.Info(report.Init, "RDMA through %s on %s%s", l.Name, few(names, " "), without)
	for _, d := range devices {
		l.Log.Info(report.Init, "%s", d.Describe())
	}
}

// nothing explains an empty list.
func nothing(l *card.Library, passed []string) error {
	if len(passed) == 0 {
		return none("%s shows no RDMA device", l.Name)
	}
	return none("no RDMA device can be used: %s", few(passed, ", "))
}
