package inspector

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"weft/internal/trace/model"
	"weft/transport/record/format"
)

// Format is the version of the inspector's output that Write writes.
const Format = "v4.0"

// idLength is how much of a communicator's id the inspector has room for.
const idLength = 16

// Write writes the process's operations, each a JSON object on a line, with the
// inspector's keys in its order.
func (p *Process) Write(w io.Writer) error {
	line := new(bytes.Buffer)
	for _, o := range p.Operations {
		line.Reset()
		p.head(line, o)
		if o.event.Type == format.P2p {
			p.body(line, "p2p", o)
		} else {
			p.body(line, "coll", o)
		}
		line.WriteString("}}\n")
		if _, err := line.WriteTo(w); err != nil {
			return err
		}
	}
	return nil
}

func (p *Process) head(w *bytes.Buffer, o *Operation) {
	c := o.event.In
	fmt.Fprintf(w, `{"header":{"id":%s,"comm_name":%s,"rank":%d,"n_ranks":%d,"nnodes":%d},`,
		text(id(c.Of)), text(name(c.Of)), c.Rank, c.Of.Ranks, c.Of.Nodes)
	// The inspector's time is that of its next look, which is no earlier than this.
	fmt.Fprintf(w, `"metadata":{"inspector_output_format_version":%s,"git_rev":%s,"rec_mechanism":"nccl_profiler_interface","dump_timestamp_us":%d,"hostname":%s,"pid":%d},`,
		text(Format), text(p.Of.Header.Build), p.micros(o.done), text(p.Of.Header.Host), p.Of.Header.PID)
}

func (p *Process) body(w *bytes.Buffer, kind string, o *Operation) {
	fmt.Fprintf(w, `"%[1]s_perf":{"%[1]s":%[2]s,"%[1]s_sn":%[3]d,`, kind, text(o.event.Func()), o.Number)
	if o.event.Type == format.P2p {
		fmt.Fprintf(w, `"p2p_peer":%d,`, o.event.Peer())
	}
	fmt.Fprintf(w, `"%[1]s_msg_size_bytes":%[2]d,"%[1]s_exec_time_us":%[3]d,"%[1]s_timing_source":"%[4]s","%[1]s_algobw_gbs":%[5]f,"%[1]s_busbw_gbs":%[6]f`,
		kind, o.Bytes, o.Micros, o.Source, o.Algorithm, o.Bus)
	if p.verbose {
		m := o.moments()
		m.write(w, kind, "sn", o, func(x moment) uint64 { return x.number })
		m.write(w, kind, "ts", o, func(x moment) uint64 {
			if x.at == 0 {
				return 0
			}
			return p.micros(x.at)
		})
	}
}

// write writes the moments once, by their order or their time.
func (m *moments) write(w *bytes.Buffer, kind, by string, o *Operation, value func(moment) uint64) {
	fmt.Fprintf(w, `,"event_trace_%[2]s":{"%[1]s_start_%[2]s":%[3]d,"%[1]s_stop_%[2]s":%[4]d,"kernel_events":[`, kind, by, value(m.start), value(m.stop))
	for i, k := range m.kernels {
		if i > 0 {
			w.WriteByte(',')
		}
		fmt.Fprintf(w, `{"channel_id":%[2]d,"kernel_start_%[1]s":%[3]d,"kernel_stop_%[1]s":%[4]d,"kernel_record_%[1]s":%[5]d}`,
			by, o.kernels[i].Channel(), value(k[0]), value(k[1]), value(k[2]))
	}
	w.WriteString("]}")
}

// id is the communicator's as the inspector writes it, so that both can be joined.
func id(c *model.Communicator) string {
	s := fmt.Sprintf("%#x", c.ID)
	return s[:min(len(s), idLength)]
}

func name(c *model.Communicator) string {
	if c.Name == "" {
		return "unknown"
	}
	return c.Name
}

func text(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // a string always becomes JSON
	}
	return string(b)
}
