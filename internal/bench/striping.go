package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"weft/internal/host"
	"weft/internal/rounds"
	"weft/internal/simverbs"
)

// stripingSizes are messages that are cut, and such that are too small for it.
var stripingSizes = []int64{4 << 20, 64 << 10}

// underWay is how many messages of a size are there at a time: enough for a
// process that loses its core for a moment.
func underWay(size int64) int64 { return min(64<<20/size, 256) }

// steady is how long a figure of striping is taken: a mean, not the best part of it.
const steady = 4 * time.Second

// striping measures a device made of one of 0.4 GB/s and one of 0.1, and again
// once the faster has been throttled to half.
func striping(c *config) error {
	w := simverbs.World{Name: fmt.Sprintf("bench-%d", os.Getpid()), Devices: []simverbs.Device{
		{Name: "sim0", GIDs: []string{"10.77.0.1/24"}, Speed: 40_000},
		{Name: "sim1", GIDs: []string{"10.78.0.1/24"}, Speed: 10_000},
	}}
	env, err := w.Env(filepath.Join(c.dist, "simverbs"), "")
	if err != nil {
		return err
	}
	defer w.Remove()
	for _, mode := range []string{"even", "speed", "measured"} {
		r, err := c.newRig(c.library(), append(env, "NCCL_IB_GID_INDEX=1", "WEFT_STRIPING="+mode)...)
		if err != nil {
			return err
		}
		err = r.shares("WEFT_STRIPING="+mode, [][2]float64{{0.4, 0.1}, {0.2, 0.1}}, func(rates [2]float64) error {
			return w.Control(r.a.PID, fmt.Sprintf("rate sim0 %g", rates[0]), fmt.Sprintf("rate sim1 %g", rates[1]))
		})
		r.close()
		if err != nil {
			return err
		}
	}
	return nil
}

// tcpStriping is the same over two cables.
func tcpStriping(c *config) error {
	cables, err := newCables(2)
	if errors.Is(err, errNoCables) {
		fmt.Printf("  not measured: %v\n", err)
		return nil
	}
	if err != nil {
		return err
	}
	defer cables.remove()
	r, err := c.newRigIn(cables.ns, c.library(), "NCCL_SOCKET_IFNAME=eth", "NCCL_IB_DISABLE=1")
	if err != nil {
		return err
	}
	defer r.close()
	return r.shares("streams", [][2]float64{{0.4, 0.1}, {0.2, 0.1}}, func(rates [2]float64) error {
		return errors.Join(cables.shape(0, rates[0]), cables.shape(1, rates[1]))
	})
}

// shares measures devices 0 and 1 alone and the device made of both, while the
// two carry what set makes them, GB/s.
func (r *rig) shares(name string, rates [][2]float64, set func([2]float64) error) error {
	fused := 0
	for _, n := range []*host.Net{r.na, r.nb} {
		var err error
		if fused, err = n.MakeVDevice([]int{0, 1}); err != nil {
			return err
		}
	}
	lanes := map[int]func(size int64, long time.Duration, rate float64) (float64, error){}
	for _, dev := range []int{0, 1, fused} {
		var err error
		if lanes[dev], err = r.bulk(dev); err != nil {
			return err
		}
	}
	for _, is := range rates {
		if err := set(is); err != nil {
			return err
		}
		sum := 0.0
		fmt.Printf("  %-22s", name)
		for dev, rate := range is {
			gbs, err := lanes[dev](stripingSizes[0], steady/2, rate)
			if err != nil {
				return err
			}
			sum += gbs
			fmt.Printf("  %.3f", gbs)
		}
		for _, size := range stripingSizes {
			first, err := lanes[fused](size, time.Second, is[0]+is[1])
			if err != nil {
				return err
			}
			gbs, noisy := 0.0, 0
			disturbed, err := calmly([]*host.Host{r.a, r.b}, func() (err error) {
				gbs, err = lanes[fused](size, steady, is[0]+is[1])
				return err
			})
			if err != nil {
				return err
			}
			if disturbed {
				noisy = 1
			}
			fmt.Printf("   %7d bytes: %.3f (%.2f of the sum%s; in its first second %.2f)", size, gbs, gbs/sum, rounds.Mark(noisy), first/sum)
		}
		fmt.Println()
	}
	return nil
}

// bulk connects two devices and returns what measures GB/s from one to the
// other, a mean over so long, in pieces of half a second where it is so fast.
func (r *rig) bulk(dev int) (func(size int64, long time.Duration, rate float64) (float64, error), error) {
	const span = 64 << 20
	send, recv, err := connectOn(dev, r.na, r.nb, r.a, r.b)
	if err != nil {
		return nil, err
	}
	bufA, mhA, err := buffer(r.a, r.na, send, span)
	if err != nil {
		return nil, err
	}
	bufB, mhB, err := buffer(r.b, r.nb, recv, span)
	if err != nil {
		return nil, err
	}
	return func(size int64, long time.Duration, rate float64) (float64, error) {
		count := int64(rate*1e9/2)/size + 1
		both := host.Args{"size", size, "span", min(span, underWay(size)*size), "window", underWay(size), "count", count, "limit", limit / 2}
		bytes, us := 0.0, 0.0
		for us < float64(long/time.Microsecond) {
			_, rb, err := r.both("bw", append(host.Args{"role", "send", "comm", send, "mh", mhA, "buf", bufA}, both...),
				"bw", append(host.Args{"role", "recv", "comm", recv, "mh", mhB, "buf", bufB}, both...))
			if err != nil {
				return 0, err
			}
			bytes += float64(size * count)
			us += rb.Float("us")
		}
		return bytes / us / 1e3, nil
	}, nil
}
