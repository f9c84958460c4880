package fastpath

import "sync/atomic"

// turns are the lanes in the order in which they take messages that one of them carries: each as often as its weight
// says, but at least once, and spread evenly. timed lanes have the time of their first message taken. A single lane has one
// turn, so that its comm uses one cache line of the order.
func turns(weights []uint32, timed bool) []wfTurn {
	if len(weights) == 1 {
		return []wfTurn{{}}
	}
	sum, total := 0, 0
	for _, w := range weights {
		sum += int(w)
	}
	times := make([]int, len(weights))
	for i, w := range weights {
		times[i] = max(1, (int(w)*(wfOrder-wfLanes)+sum/2)/sum) // rounding up adds at most one per lane
		total += times[i]
	}
	order, due, seen := make([]wfTurn, 0, wfOrder), make([]int, len(weights)), make([]bool, len(weights))
	for range total {
		for i := range due {
			due[i] += times[i]
		}
		next := 0
		for i := range due {
			if due[i] > due[next] {
				next = i
			}
		}
		due[next] -= total
		turn := wfTurn{lane: uint32(next)}
		if timed && !seen[next] {
			turn.timed = 1
		}
		seen[next], order = true, append(order, turn)
	}
	return order
}

// weigh gives the lanes their weights, whether the owner has taken the last of them over or not. Wherever the owner stands
// meanwhile, it finds a lane there.
func (c *Comm) weigh(weights []uint32, timed bool) {
	for i, w := range weights {
		atomic.StoreUint32(&c.view.gauge[i].weight, w)
	}
	order := turns(weights, timed)
	for i, turn := range order {
		atomic.StoreUint32(&c.view.order[i].lane, turn.lane)
		atomic.StoreUint32(&c.view.order[i].timed, turn.timed)
	}
	atomic.StoreUint32(&c.view.places, uint32(len(order)))
}
