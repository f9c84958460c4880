package doctor

import (
	"fmt"
	"reflect"
	"strings"
)

const docHead = `# Doctor

Generated from the rules in internal/doctor by ` + "`go test ./internal/doctor -update`" + `; a test compares.

` + "`weft doctor`" + ` says what is wrong on a machine for NCCL with weft, from its files and the environment of the process. It loads and
changes nothing, and needs no root; what only root may read it lists as not seen. It says how each release of NCCL looks for
plugins and what it finds, which RDMA ports and which GIDs are used and why, which interfaces, and what is wrong: each finding with
a code, its evidence, what follows and the command that mends it.

| command | for |
|---|---|
| ` + "`weft doctor`" + ` | everything, for people |
| ` + "`weft doctor --quiet`" + ` | the verdict, one line |
| ` + "`weft doctor --json`" + ` | the report, in the form below |
| ` + "`weft doctor --bundle FILE`" + ` | the evidence as a tar.gz for a ticket: names of hosts and users, addresses, hardware addresses and secrets are replaced, the same by the same, and subnets stay subnets. ` + "`weft doctor --root DIR/machine`" + ` says the same of what it unpacks to |
| ` + "`weft doctor --explain WEFT-070`" + ` | what a code means |
| ` + "`weft doctor --rules`" + ` | all rules |
| ` + "`weft doctor --hosts node1,node2`" + `, ` + "`srun weft doctor`" + ` | all hosts of a job, asked by ssh or by the launcher, and what is wrong between them. Each port probes for up to 2 s what passes to the next, the one before and one half around in its subnet, and between subnets, with UDP packets that may not be cut |
| ` + "`weft doctor --root DIR`" + ` | another machine, or a copy of its files: its environment is ` + "`proc/self/environ`" + ` there |

` + "[`weft env`](info.md#env)" + ` prints those remedies that are variables.

**Exit status.** 0: nothing is wrong, or there is advice only. 1: something breaks jobs or slows them. 2: the machine cannot be read, or
not within 30 s (` + "`--timeout`" + `). So a node health check (NHC) runs it as it is: ` + "`* || check_cmd_status -t 30 -r 0 env NCCL_NET_PLUGIN=weft weft doctor --quiet`, on nodes that have the links of weft-default too ([WEFT-004](#weft-004))" + `

**Severity.** *breaks*: a job fails, or does not use weft or RDMA. *slows*: a job runs, and not as fast as the machine could.
*advice*: worth knowing; it changes no exit status.

**From a line of the log.** Where a line of weft's log ends in codes, as in ` + "`... [WEFT-070 WEFT-027]`" + `, those rules look for its cause:
` + "`weft doctor --explain WEFT-070`" + `.

Counters are looked at twice, a second apart (` + "`--look`" + `), on the machine itself; of a copy there is one look. A counter is told if it is
high, or grows.
`

// Markdown is docs/doctor.md.
func Markdown() string {
	var b strings.Builder
	b.WriteString(docHead)
	b.WriteString("\n## By symptom\n\n| what you see | rule | what is wrong |\n|---|---|---|\n")
	for _, r := range Rules() {
		fmt.Fprintf(&b, "| %s | [%s](#%s) | %s |\n", cell(r.Symptom), r.Code, strings.ToLower(r.Code), cell(r.Title))
	}
	topic := ""
	for _, r := range byTopic() {
		if r.Topic != topic {
			topic = r.Topic
			fmt.Fprintf(&b, "\n## %s\n", topic)
		}
		fmt.Fprintf(&b, "\n### %s\n\n%s (*%s*).\n\n- What follows: %s.\n- What mends it: %s\n", r.Code, capital(r.Title), r.Severity, r.Consequence, remedyText(r))
	}
	b.WriteString("\n## The form of --json\n\nThe schema is `" + Schema + "`: fields may come; none goes or changes its meaning without a new number.\n")
	for _, part := range []struct {
		name string
		of   any
	}{
		{"The report", Report{}}, {"A host, in `hosts`", Host{}}, {"A finding, in `findings`", Finding{}}, {"A library, in `nccl`", NCCL{}},
		{"Releases, in `releases`", Row{}}, {"A port, in `devices`", Device{}}, {"A network device, in `interfaces`", Interface{}}, {"A path, in `paths`", Path{}},
	} {
		fmt.Fprintf(&b, "\n### %s\n\n| field | type | meaning |\n|---|---|---|\n", part.name)
		for field := range reflect.TypeOf(part.of).Fields() {
			name, rest, _ := strings.Cut(field.Tag.Get("json"), ",")
			kind := field.Type.String()[strings.LastIndex(field.Type.String(), ".")+1:]
			if field.Type.Kind() == reflect.Slice {
				kind = "list"
			} else if field.Type.Kind() == reflect.String {
				kind = "string"
			} else if field.Type.Kind() == reflect.Map {
				kind = "object"
			}
			if rest == "omitempty" {
				kind += ", may be absent"
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", name, kind, cell(field.Tag.Get("doc")))
		}
	}
	return b.String()
}

// byTopic has the rules of one topic together, in the order in which topics first come.
func byTopic() (all []Rule) {
	var topics []string
	of := map[string][]Rule{}
	for _, r := range Rules() {
		if of[r.Topic] == nil {
			topics = append(topics, r.Topic)
		}
		of[r.Topic] = append(of[r.Topic], r)
	}
	for _, t := range topics {
		all = append(all, of[t]...)
	}
	return all
}

func remedyText(r Rule) string {
	if r.Remedy == "" {
		return "the finding names the command, for what it has seen."
	}
	return "`" + r.Remedy + "`"
}

func cell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }

func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
