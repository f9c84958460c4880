package verbs

import (
	"errors"
	"sync"
	"syscall"
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
// Only an answer is kept: a trial that failed for another reason is no answer.
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

// known reports whether the answer is No, with the reason.
func (f *Feature) refused() (string, bool) {
	is, why := f.State()
	return why, is == No
}

func (f *Feature) yes() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.is == Unknown {
		f.is, f.why = Yes, ""
	}
}

func (f *Feature) no(why string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.is, f.why = No, why
}

// learn keeps what errno of a trial says: no error is Yes, "not supported" is
// No, all else tells nothing.
func (f *Feature) learn(call string, errno syscall.Errno) {
	switch {
	case errno == 0:
		f.yes()
	case unsupported(errno):
		f.no(call + " answers " + errno.Error())
	}
}

func unsupported(err error) bool {
	return errors.Is(err, syscall.EOPNOTSUPP) || errors.Is(err, syscall.EPROTONOSUPPORT) || errors.Is(err, syscall.ENOSYS)
}
