package model

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Family is a kind of plugin, as rules and messages call it.
type Family string

// The families that weft serves.
const (
	Net      Family = "net"
	CollNet  Family = "collNet"
	Profiler Family = "profiler"
	Tuner    Family = "tuner"
)

// naming is what a family is called by NCCL, and by what is generated for it.
type naming struct {
	family Family
	kind   string // its types: ncclNet_v12_t
	symbol string // its tables: ncclNetPlugin_v12
	header string // where they are: net_v12.h
	title  string // what that header holds
	goName string // in Go: NetInitArgs
	cName  string // in the names of C functions: weft_net_init
}

// names lists all families, in the order in which everything is listed.
var names = []naming{
	{Net, "ncclNet", "ncclNetPlugin", "net", "Network plugins", "Net", "net"},
	{CollNet, "ncclCollNet", "ncclCollNetPlugin", "net", "Network plugins", "CollNet", "coll"},
	{Profiler, "ncclProfiler", "ncclProfiler", "profiler", "Profiler plugin", "Profiler", "prof"},
	{Tuner, "ncclTuner", "ncclTunerPlugin", "tuner", "Tuner plugin", "Tuner", "tune"},
}

// Families in the order in which everything is listed.
var Families = func() (all []Family) {
	for _, n := range names {
		all = append(all, n.family)
	}
	return all
}()

var (
	// TableType matches the types of tables; their version is the second group.
	TableType = regexp.MustCompile(`^(` + anyOf(kindOf) + `)_v(\d+)_t$`)
	// FamilyType matches all versioned types that are named after a family, and what tuners are told of NVLinks.
	FamilyType = regexp.MustCompile(`^(` + anyOf(kindOf) + `|ncclNvlDomainInfo)\w*_v\d+_t$`)
	// pluginMacro matches the limits and flags of plugins.
	pluginMacro = regexp.MustCompile(`^NCCL_(NET|COLLNET|PTR|PROFILER|MAX_NET)_\w+$`)
	// TableHeader matches the headers of tables: their stem, their version.
	TableHeader = regexp.MustCompile(`^(` + anyOf(headerOf) + `)_v(\d+)\.h$`)
)

func kindOf(n naming) string   { return n.kind }
func headerOf(n naming) string { return n.header }

// anyOf is a regular expression for what the families have of a kind.
func anyOf(what func(naming) string) string {
	var all []string
	for _, n := range names {
		all = append(all, what(n))
	}
	return strings.Join(slices.Compact(all), "|")
}

func (f Family) naming() naming {
	for _, n := range names {
		if n.family == f {
			return n
		}
	}
	panic("no family " + string(f))
}

// Stem returns what the names of all its tables begin with.
func (f Family) Stem() string { return f.naming().symbol }

// Symbol returns the name that NCCL looks up for version v of the family.
func (f Family) Symbol(v int) string { return fmt.Sprintf("%s_v%d", f.Stem(), v) }

// TypeName returns the name of the table type of version v.
func (f Family) TypeName(v int) string { return fmt.Sprintf("%s_v%d_t", f.naming().kind, v) }

// Header returns the header that holds version v, in the folder of headers.
func (f Family) Header(v int) string { return fmt.Sprintf("nccl/%s_v%d.h", f.naming().header, v) }

// Title says what the headers of the family hold.
func (f Family) Title() string { return f.naming().title }

// Go returns the stem of the family's names in Go.
func (f Family) Go() string { return f.naming().goName }

// C returns the family as C functions and tools/host call it.
func (f Family) C() string { return f.naming().cName }
