package collnet

import (
	"time"

	"weft/collnet/schedule"
)

type Path struct {
	Latency   time.Duration
	Bandwidth float64
}

type Fabric struct {
	N      int
	Cabled [][]bool
	Path   Path
}

func pick(op schedule.Op, f Fabric) (schedule.Algorithm, []int) {
	if op.Kind == schedule.AllReduce && op.Count*int64(op.Elem) <= 32<<10 {
		return schedule.OneShot, nil
	}
	return schedule.Direct, nil
}
