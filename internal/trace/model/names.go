package model

import (
	"fmt"
	"strings"

	"weft/abi"
	"weft/transport/record/format"
)

// TypeName is what NCCL calls the event's type.
func (e *Event) TypeName() string { return TypeName(e.Type) }

// TypeName is what NCCL calls a type of events.
func TypeName(t uint8) string {
	if int(t) < len(abi.ProfilerEvents) && abi.ProfilerEvents[t] != "" {
		return abi.ProfilerEvents[t]
	}
	return fmt.Sprintf("type %d", t)
}

// Func is the operation of a Coll, P2p, CollAPI, P2pAPI or CeColl, as AllReduce.
func (e *Event) Func() string {
	return strings.TrimPrefix(e.Process.Text(e.More[0]&0xffffffff), "nccl")
}

// Datatype is what one of the operation's elements is, as Float32.
func (e *Event) Datatype() string {
	return strings.TrimPrefix(e.Process.Text(e.More[0]>>32), "nccl")
}

// Count is how many elements the operation has.
func (e *Event) Count() uint64 {
	switch e.Type {
	case format.Coll, format.CeColl:
		return e.B
	}
	return e.A
}

// Algorithm and Protocol are those of a Coll; of a CeColl the strategy.
func (e *Event) Algorithm() string { return e.Process.Text(e.More[1] & 0xffffffff) }

// Protocol of a Coll.
func (e *Event) Protocol() string {
	if e.Type != format.Coll {
		return ""
	}
	return e.Process.Text(e.More[1] >> 32)
}

// Channels is how many a Coll or P2p uses; 0: the host does not say.
func (e *Event) Channels() int {
	if e.Type == format.P2p {
		return int(e.More[1] & 0xff)
	}
	return int(e.More[2] >> 32 & 0xff)
}

// Peer is the rank that a P2p or ProxyOp is for.
func (e *Event) Peer() int32 { return int32(uint32(e.B)) }

// sizes of NCCL's data types, whatever case they are written in.
var sizes = map[string]uint64{
	"int8": 1, "char": 1, "uint8": 1, "int32": 4, "int": 4, "uint32": 4, "int64": 8, "uint64": 8, "float16": 2, "half": 2,
	"float32": 4, "float": 4, "float64": 8, "double": 8, "bfloat16": 2, "float8e4m3": 1, "float8e5m2": 1,
}

// Bytes is how many the operation's elements have; ok is false for a data type that is not known.
func (e *Event) Bytes() (bytes uint64, ok bool) {
	size, ok := sizes[strings.ToLower(e.Datatype())]
	return size * e.Count(), ok
}
