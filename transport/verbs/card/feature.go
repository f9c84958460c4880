package card

import (
	"sync"
	"syscall"

	"weft/transport/verbs/fail"
)

// Support is what is known of an optional feature.
type Support uint8

const (
	Unknown Support = iota // not tried yet, or the trial told nothing
	Yes
	No
)

func (s Support) String() string { return [...]string{"unknown", "yes", "no"}[s] }

// Feature is an optional power of library, kernel and device, found out once.
// Only yes and no are kept: a trial that failed for another reason says neither.
type Feature struct {
	mu  sync.Mutex // protects the fields below
	is  Support
	why string
}

// State returns what is known and, for No, why not.
func (f *Feature) State() (Support, string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.is, f.why
}

// Refused reports whether it is No, with the reason.
func (f *Feature) Refused() (string, bool) {
	is, why := f.State()
	return why, is == No
}

// Yes keeps that it is there, unless something is known.
func (f *Feature) Yes() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.is == Unknown {
		f.is, f.why = Yes, ""
	}
}

// No keeps that it is not, and why.
func (f *Feature) No(why string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.is, f.why = No, why
}

// Learn keeps what errno of a trial says: no error is Yes, "not supported" is
// No, all else tells nothing.
func (f *Feature) Learn(call string, errno syscall.Errno) {
	switch {
	case errno == 0:
		f.Yes()
	case fail.Unsupported(errno):
		f.No(call + " returned " + errno.Error())
	}
}
