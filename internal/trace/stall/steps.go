package stall

import (
	"fmt"

	"weft/internal/trace/model"
	"weft/transport/record/format"
)

// States of a step of NCCL's proxy, by what it waits for.
const (
	sendGPU    = 8  // its GPU, which has not given what is to be sent
	receiveGPU = 12 // its GPU, which has not taken what came
	sendPeer   = 20 // the receiver, which has not posted; from NCCL 2.27 on
)

// openSteps are the process's that have not ended, with the state that each is in.
func openSteps(p *model.Process, do func(e *model.Event, in model.State)) {
	for _, e := range p.Events {
		if e.Type != format.ProxyStep || e.Stop != model.Never || len(e.States) == 0 {
			continue
		}
		if e.Up != nil && e.Up.Stop != model.Never {
			continue // NCCL 2.24 leaves steps of what is done without an end
		}
		do(e, e.States[len(e.States)-1])
	}
}

// steps finds who waits for a receive before there is a message: the network takes
// a send only when its receive is known, and NCCL asks until then.
func (r *Report) steps(t *model.Trace, nodes map[*model.Process]*node) {
	for _, p := range t.Processes {
		openSteps(p, func(e *model.Event, in model.State) {
			if in.Number != sendPeer || e.Up == nil || e.Up.In == nil || e.Up.In.Of.ID == 0 {
				return
			}
			if e.Up.OpPID() != p.Header.PID {
				return // PXN: the communicator is one of the process that asked
			}
			for _, c := range e.Up.In.Of.Comms {
				if c.Rank == e.Up.Peer() && c.Process != p {
					r.add(Wait{Why: NoReceive, Network: "NCCL's proxy", Bytes: in.A, from: nodes[p], to: nodes[c.Process]}, in.Time, nodes[p].now)
				}
			}
		})
	}
}

// gpu tells for what the steps of a process wait on its own side.
func gpu(n *node) []string {
	of, since := map[uint32]int{}, map[uint32]uint64{}
	openSteps(n.process, func(_ *model.Event, in model.State) {
		of[in.Number]++
		if n.now > in.Time {
			since[in.Number] = max(since[in.Number], n.now-in.Time)
		}
	})
	var all []string
	if of[receiveGPU] > 0 {
		all = append(all, fmt.Sprintf("%d of its proxy's steps wait for its GPU to take what has come, for %v", of[receiveGPU], short(since[receiveGPU])))
	}
	if of[sendGPU] > 0 {
		all = append(all, fmt.Sprintf("%d of its proxy's steps wait for its GPU to give what is to be sent, for %v", of[sendGPU], short(since[sendGPU])))
	}
	return all
}
