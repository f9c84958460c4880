package report

// Subsys is the part of NCCL's log that a line belongs to; the plugin
// translates it into the host's flag values.
type Subsys uint8

const (
	Init Subsys = iota
	Net
	Env
)

func (s Subsys) String() string { return [...]string{"INIT", "NET", "ENV"}[s%3] }

// Logger takes the lines that weft has to say. A line has no prefix and no
// newline. Implementations are safe for use by many goroutines and tolerate a
// host that gave no log function.
type Logger interface {
	Warn(format string, a ...any)
	Info(sub Subsys, format string, a ...any)
	Trace(sub Subsys, format string, a ...any)
}

// Informs reports whether l has a use for INFO lines: what they say need not be found out
// where it has none. A Logger that does not tell has one.
func Informs(l Logger) bool {
	i, tells := l.(interface{ Informs() bool })
	return !tells || i.Informs()
}

// Discard is the Logger that says nothing.
type Discard struct{}

func (Discard) Warn(string, ...any)          {}
func (Discard) Info(Subsys, string, ...any)  {}
func (Discard) Trace(Subsys, string, ...any) {}
