package draw

import (
	"fmt"

	"weft/internal/trace/model"
	"weft/transport/record/format"
)

// title is what stands on the slice.
func (c *canvas) title(e *model.Event) string {
	title := e.TypeName()
	switch e.Type {
	case format.Coll, format.P2p, format.CollAPI, format.P2pAPI, format.CeColl:
		if f := e.Func(); f != "" {
			title = f
		}
	case format.ProxyOp, format.ProxyStep:
		title = operation(e)
	case format.KernelPhase:
		if n := e.Process.Text(e.C); n != "" {
			title = n
		}
	case format.NetPlugin:
		title = "work request"
		if e.Flags != format.NetIB {
			title = "socket"
		}
	}
	switch {
	case e.Captured:
		title += " (graph)"
	case e.Open:
		title += " (open)"
	case e.Launch:
		title += " (launch)"
	}
	return title
}

// operation names a ProxyOp, or a step of one, by what it is for.
func operation(e *model.Event) string {
	op := e
	if e.Type == format.ProxyStep {
		op = e.Up
	}
	text := "step"
	if op != nil {
		text = fmt.Sprintf("%s %d", map[bool]string{true: "to", false: "from"}[op.Sends()], op.Peer())
		if op.Up != nil && op.Up.Func() != "" {
			text = op.Up.Func() + " " + text
		}
	}
	return text
}

// list makes the arguments of a slice, without those that are not set.
type list []Arg

func (l *list) text(name, v string) {
	if v != "" {
		*l = append(*l, Arg{name, v})
	}
}

func (l *list) number(name string, v uint64) { *l = append(*l, Arg{name, v}) }

func (l *list) flag(name string, v bool) {
	if v {
		*l = append(*l, Arg{name, true})
	}
}

func args(e *model.Event) []Arg {
	var l list
	switch e.Type {
	case format.Coll, format.CeColl:
		l.number("number", e.A)
		operands(&l, e)
		l.text("algorithm", e.Algorithm())
		l.text("protocol", e.Protocol())
		l.number("root", e.More[2]&0xffffffff)
		if e.Type == format.Coll {
			l.number("channels", uint64(e.Channels()))
			l.number("warps", e.More[2]>>40&0xff)
			l.text("kernel", e.Process.Text(e.More[6]))
			l.flag("symmetric", e.More[2]>>48&1 == 1)
		} else {
			l.number("batches", e.More[6]&0xffffffff)
			l.number("batch size", e.More[2]>>32)
			l.flag("synchronised within batches", e.Flags&1 == 1)
		}
	case format.P2p:
		operands(&l, e)
		l.number("peer", e.B&0xffffffff)
		l.number("channels", uint64(e.Channels()))
	case format.CollAPI, format.P2pAPI:
		operands(&l, e)
		l.number("stream", e.B)
	case format.GroupAPI:
		l.number("depth", e.A)
	case format.KernelLaunch:
		l.number("stream", e.B)
	case format.ProxyOp:
		l.number("peer", e.B&0xffffffff)
		l.number("steps", e.B>>32)
		l.number("chunk bytes", e.C)
		l.flag("for another process", e.Up != nil && e.Up.Process != e.Process)
	case format.ProxyStep:
		l.number("step", e.A)
		if n := len(e.States); n > 0 {
			l.number("bytes", e.States[n-1].A)
		}
	case format.KernelPhase:
		l.number("phase", e.A>>8)
	case format.NetPlugin:
		if e.Flags == format.NetIB {
			l.number("wr_id", e.A)
			l.number("opcode", e.C>>16&0xffff)
		} else {
			l.number("op", e.A>>32)
		}
		l.number("bytes", e.B)
	case format.CeBatch:
		l.number("operations", e.A)
		l.number("bytes", e.B)
		l.flag("synchronised within", e.C&1 == 1)
	case format.CeSync:
		l.number("ranks", e.A>>32)
		l.flag("complete", e.A&1 == 1)
	}
	l.flag("open", e.Open)
	l.flag("launch only", e.Launch)
	l.flag("graph captured", e.Captured)
	l.flag("GPU's time", e.OnGPU)
	return l
}

func operands(l *list, e *model.Event) {
	l.number("count", e.Count())
	l.text("datatype", e.Datatype())
	if bytes, ok := e.Bytes(); ok {
		l.number("bytes", bytes)
	}
	if e.C != 0 {
		l.number("tag", e.C)
	}
}
