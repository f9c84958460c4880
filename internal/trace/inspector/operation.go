package inspector

import (
	"cmp"
	"slices"

	"weft/internal/trace/model"
	"weft/internal/trace/summary"
	"weft/transport/record/format"
)

// What an operation's time is by.
const (
	kernelGPU     = "kernel_gpu"
	kernelCPU     = "kernel_cpu"
	collectiveCPU = "collective_cpu"
)

// Operation is a collective, a send or a receive of one rank.
type Operation struct {
	Number    uint64
	Bytes     uint64
	Micros    uint64 // of the channel that took longest
	Source    string // of Micros
	Algorithm float64
	Bus       float64 // both GB/s

	event   *model.Event
	kernels []*model.Event // by channel
	done    uint64
}

// finish looks how long the operation took; false: it has not ended, or not all of
// it was recorded.
func (o *Operation) finish() bool {
	on := map[uint8]*model.Event{}
	for _, d := range o.event.Down {
		if d.Type == format.KernelCh {
			on[d.Channel()] = d
		}
	}
	if len(on) == 0 || o.event.Channels() > 0 && len(on) != o.event.Channels() {
		return false
	}
	for _, k := range on {
		if k.Stop == model.Never {
			return false
		}
		o.kernels, o.done = append(o.kernels, k), max(o.done, k.Stop)
	}
	slices.SortFunc(o.kernels, func(a, b *model.Event) int { return int(a.Channel()) - int(b.Channel()) })
	o.time()
	o.bandwidth()
	return true
}

// time takes the GPU's timer for a channel, and the host's clock where there is
// none. Of collectives the longest channel counts, by whichever; of sends and
// receives the longest that a GPU has timed, if there is one.
func (o *Operation) time() {
	gpu, host, first := uint64(0), uint64(0), uint64(model.Never)
	for _, k := range o.kernels {
		first = min(first, k.Time)
		if ns, _ := k.GPUTime(); ns >= 1000 {
			gpu = max(gpu, ns/1000)
		} else if k.Stop > k.Time {
			host = max(host, (k.Stop-k.Time)/1000)
		}
	}
	switch {
	case gpu > 0 && (gpu >= host || o.event.Type == format.P2p):
		o.Micros, o.Source = gpu, kernelGPU
	case host > 0:
		o.Micros, o.Source = host, kernelCPU
	default:
		o.Micros, o.Source = (o.done-first)/1000, collectiveCPU
	}
}

func (o *Operation) bandwidth() {
	if o.Micros == 0 {
		return
	}
	fn, ranks := o.event.Func(), o.event.In.Of.Ranks
	o.Algorithm = float64(summary.Traffic(fn, o.Bytes, ranks)) / 1e3 / float64(o.Micros)
	o.Bus = o.Algorithm * summary.Factor(fn, ranks)
}

// moment is one that the inspector keeps of an operation.
type moment struct {
	at     uint64 // 0: it was not recorded
	number uint64 // in their order
}

// moments are those of an operation and of its kernels: start, end, and when the
// GPU's timer was read.
type moments struct {
	start, stop moment
	kernels     [][3]moment
}

func (o *Operation) moments() *moments {
	m := &moments{start: moment{at: o.event.Time}, kernels: make([][3]moment, len(o.kernels))}
	if o.event.Stop != model.Never {
		m.stop.at = o.event.Stop
	}
	all := []*moment{&m.start, &m.stop}
	for i, k := range o.kernels {
		of := &m.kernels[i]
		of[0].at, of[1].at = k.Time, k.Stop
		if n := len(k.States); n > 0 {
			of[2].at = k.States[n-1].Time
		}
		all = append(all, &of[0], &of[2], &of[1])
	}
	slices.SortStableFunc(all, func(a, b *moment) int { return cmp.Compare(a.at, b.at) })
	number := uint64(0)
	if o.event.Type == format.P2p {
		number = o.Number // the inspector counts on from there
	}
	for _, x := range all {
		if x.at != 0 {
			number++
			x.number = number
		}
	}
	return m
}
