package inspector

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"weft/transport/record/format"
)

// promFormat is the version that the inspector puts into a label.
const promFormat = "v5.1"

// MetricsName is what the inspector calls a GPU's file. Nothing recorded tells which
// GPU a process has, so that there is one per process.
func (p *Process) MetricsName() string { return "nccl_inspector_metrics_" + p.stem() + ".prom" }

// bucket is what is put together to one value.
type bucket struct {
	p2p           bool
	fn, comm, how string
	ranks, nodes  int
	lower         uint64 // of the size, in units of
	unit          int
}

type sums struct {
	micros, logBus float64
	count, timed   int
}

// WriteMetrics writes the process's operations as the inspector does for a node
// exporter: bus bandwidth (geometric mean) and time by operation, size and communicator.
func (p *Process) WriteMetrics(w io.Writer) error {
	all := map[bucket]*sums{}
	for _, o := range p.Operations {
		b := o.bucket()
		s := all[b]
		if s == nil {
			s = &sums{}
			all[b] = s
		}
		s.count++
		s.micros += float64(o.Micros)
		if o.Bus > 0 {
			s.timed++
			s.logBus += math.Log(o.Bus)
		}
	}
	for _, b := range slices.SortedFunc(maps.Keys(all), bucket.compare) {
		s, labels, names := all[b], p.labels(b), [2]string{"nccl_bus_bandwidth_gbs", "nccl_collective_exec_time_microseconds"}
		if b.p2p {
			names = [2]string{"nccl_p2p_bus_bandwidth_gbs", "nccl_p2p_exec_time_microseconds"}
		}
		bus := 0.0
		if s.timed > 0 {
			bus = math.Exp(s.logBus / float64(s.timed))
		}
		if _, err := fmt.Fprintf(w, "%s{%s} %.6g\n%s{%s} %.6g\n", names[0], labels, bus, names[1], labels, s.micros/float64(s.count)); err != nil {
			return err
		}
	}
	return nil
}

func (o *Operation) bucket() bucket {
	e, c := o.event, o.event.In.Of
	b := bucket{fn: e.Func(), comm: name(c), ranks: c.Ranks, nodes: c.Nodes, p2p: e.Type == format.P2p}
	if !b.p2p {
		b.how = cmp.Or(e.Algorithm(), "unknown") + "_" + cmp.Or(e.Protocol(), "unknown")
	}
	b.lower = o.Bytes
	for ; b.lower >= 1024 && b.unit < len(units)-1; b.unit++ {
		b.lower /= 1024
	}
	return b
}

var units = []string{"B", "KB", "MB", "GB", "TB"}

func (a bucket) compare(b bucket) int {
	return cmp.Or(
		boolean(a.p2p)-boolean(b.p2p), cmp.Compare(a.ranks, b.ranks), cmp.Compare(a.nodes, b.nodes), cmp.Compare(a.fn, b.fn),
		cmp.Compare(a.unit, b.unit), cmp.Compare(a.lower, b.lower), cmp.Compare(a.comm, b.comm), cmp.Compare(a.how, b.how),
	)
}

func boolean(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (p *Process) labels(b bucket) string {
	size := "0B"
	if b.lower > 0 {
		size = fmt.Sprintf("%d-%d%s", b.lower, b.lower+1, units[b.unit])
	}
	s := fmt.Sprintf(`version="%s",slurm_job_id="unknown",node="%s",gpu="unknown",comm_name="%s",n_nodes="%d",nranks="%d",`,
		promFormat, escape(p.Of.Header.Host), escape(b.comm), b.nodes, b.ranks)
	if b.p2p {
		return s + fmt.Sprintf(`p2p_operation="%s",message_size="%s"`, escape(b.fn), size)
	}
	return s + fmt.Sprintf(`collective="%s",message_size="%s",algo_proto="%s"`, escape(b.fn), size, escape(b.how))
}

// escape is for the value of a label.
func escape(s string) string { return strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) }
