package liveness

import "weft/transport/wire"

// State is a probe at the moment.
type State struct {
	Key    Key
	Number uint32     // of the last offer
	Works  bool       // it can be asked
	Asked  bool       // it has been, since it was proven
	End    wire.QPEnd // this side's queue pair, as the peer knows it; QPN 0: there is none
}

// Probes are those that there are: the one way to look into a watcher from outside.
func (w *Watcher) Probes() (all []State) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for k, p := range w.probes {
		s := State{Key: k, Number: p.number, Works: p.works, Asked: !p.next.IsZero()}
		if p.end != nil {
			s.End = p.end.local()
		}
		all = append(all, s)
	}
	return all
}
