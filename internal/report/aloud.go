package report

import "sync"

// Aloud says the first line of its kind aloud and the others at INFO: few look for
// the cause of what still works, and thousands of connections may share one.
type Aloud struct{ once sync.Once }

// Say warns, once.
func (a *Aloud) Say(log Logger, format string, args ...any) {
	first := false
	a.once.Do(func() { first = true })
	if first {
		log.Warn(format+"; INFO lines tell of further ones", args...)
		return
	}
	log.Info(Net, format, args...)
}
