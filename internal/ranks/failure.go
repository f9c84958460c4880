package ranks

import (
	"errors"
	"fmt"

	"weft/internal/host"
	"weft/internal/node"
)

// Kind says what a rank's failure tells about where the cause is, nearest to the cause first.
type Kind int

// The kinds of failures.
const (
	Stopped Kind = iota // somebody ended the run
	Died                // the rank's host process ended by itself, or was killed by a stranger
	Gone                // the rank is not heard of any more
	Own                 // a cause at the rank itself
	Link                // the plugin blames the peer, or the way to it
	Stuck               // nothing failed, and nothing goes on
	Follows             // it ended because another rank had failed
)

// Failure is why one rank's run ended.
type Failure struct {
	Rank  int
	Host  string // the machine
	Kind  Kind
	Doing string // what the rank was doing
	Peers []int  // the ranks at the other end of what failed or waited
	Text  string
}

func (f *Failure) Error() string {
	if f.Doing == "" {
		return fmt.Sprintf("rank %d: %s", f.Rank, f.Text)
	}
	return fmt.Sprintf("rank %d: %s: %s", f.Rank, f.Doing, f.Text)
}

// AbortError is another rank's failure, as the others see it.
type AbortError struct{ *Failure }

func (e *AbortError) Error() string { return fmt.Sprintf("rank %d failed: %s", e.Rank, e.Text) }

// ErrStopped is the cause with which a user ends a run.
var ErrStopped = errors.New("stopped")

// failureOf judges the error that ended a rank's run.
func failureOf(rank int, err error) *Failure {
	var known *Failure
	if errors.As(err, &known) && known.Rank == rank {
		return known
	}
	f := &Failure{Rank: rank, Host: node.Name(), Kind: Own, Text: err.Error()}
	var other *AbortError
	var death *host.DeathError
	var command *host.CommandError
	var late *lateError
	var result *host.ResultError
	switch {
	case errors.As(err, &other):
		f.Kind = Follows
	case errors.Is(err, ErrStopped):
		f.Kind = Stopped
	case errors.As(err, &death):
		f.Kind = Died
		switch {
		case death.Deadline != "":
			f.Kind = Stuck
		case death.Expected:
			f.Kind = Follows
		}
	case errors.As(err, &command) && command.Word == "deadline", errors.As(err, &late):
		f.Kind = Stuck
	case errors.As(err, &result) && result.Code == host.RemoteError:
		f.Kind = Link
	}
	return f
}

// NewFailure judges the error that ended a rank's part of something else than Run.
func NewFailure(rank int, doing string, err error) *Failure {
	f := failureOf(rank, err)
	if f.Doing == "" {
		f.Doing = doing
	}
	return f
}

// peersOf are the ranks at the other end of the call that failed.
func (f *Failure) peersOf(e *host.ResultError, size int) []int {
	next, previous := (f.Rank+1)%size, (f.Rank+size-1)%size
	switch {
	case e.Call == "net.connect", e.Slot == "isend", e.Slot == "test of isend":
		return []int{next}
	case e.Call == "net.accept", e.Slot == "irecv", e.Slot == "test of irecv":
		return []int{previous}
	}
	return nil
}

// failure is failureOf with what this rank knows about the ring.
func (r *rank) failure(err error) *Failure {
	f := failureOf(r.g.Rank(), err)
	f.Doing = r.doing
	next, previous := (f.Rank+1)%r.g.Size(), (f.Rank+r.g.Size()-1)%r.g.Size()
	var result *host.ResultError
	if errors.As(err, &result) {
		f.Peers = f.peersOf(result, r.g.Size())
		if result.Code == host.SystemError && r.n != nil && r.n.Version < host.SinceRemoteError && len(f.Peers) > 0 {
			f.Kind = Link
		}
	}
	switch {
	case r.o.Coll != nil: // every rank is at the other end
	case f.Kind == Stuck && r.send == 0 && r.recv == 0:
		f.Peers = []int{previous, next}
	case f.Kind == Stuck && r.send == 0:
		f.Peers = []int{next}
	case f.Kind == Stuck && r.recv == 0:
		f.Peers = []int{previous}
	}
	return f
}
