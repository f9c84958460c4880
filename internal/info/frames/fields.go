package frames

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"

	"weft/internal/knob"
	"weft/transport/rdma"
	"weft/transport/wire"
)

// fields are those of a struct of wire's, those of structs in it by path.
func fields(v any) []Field {
	var all []Field
	walk(&all, "", reflect.ValueOf(v))
	return all
}

func walk(all *[]Field, name string, v reflect.Value) {
	if text, ok := told(name, v); ok {
		*all = append(*all, Field{name, text})
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Type().Field(i)
			inner := f.Name
			if name != "" {
				inner = name + "." + f.Name
			}
			walk(all, inner, v.Field(i))
		}
	case reflect.Slice:
		if v.Len() == 0 {
			*all = append(*all, Field{name, "none"})
		}
		for i := range v.Len() {
			walk(all, fmt.Sprintf("%s[%d]", name, i), v.Index(i))
		}
	default:
		*all = append(*all, Field{name, fmt.Sprint(v.Interface())})
	}
}

// hexes are numbers that are names or places.
var hexes = []string{"ListenID", "State", "Session", "Comm", "GUID", "Shared", "Addr", "Key", "Keys"}

// told is a value in its own words; false: it is made of others.
func told(name string, v reflect.Value) (string, bool) {
	last := name[strings.LastIndex(name, ".")+1:]
	last, _, _ = strings.Cut(last, "[")
	switch x := v.Interface().(type) {
	case wire.Header:
		return header(x), true
	case wire.Token:
		return fmt.Sprintf("%d bytes, a secret", len(x)), true
	case [wire.KeySize]byte:
		return fmt.Sprintf("%d bytes, a secret", len(x)), true
	case wire.Nonce, wire.ProcessID, wire.Proof:
		return fmt.Sprintf("%x", x), true
	case wire.Endpoint:
		return fmt.Sprintf("%v, subnet of %d bits", x.AddrPort(), x.Prefix), true
	case wire.PortGID:
		return fmt.Sprintf("%v (%v, subnet of %d bits)", netip.AddrFrom16(x.Addr).Unmap(), rdma.GIDType(x.Type), x.Bits), true
	case wire.Role:
		return x.String(), true
	case string:
		if x == "" {
			return "none", true
		}
		return knob.Printable(x), true
	case uint16:
		if last == "Flags" {
			return flags(x), true
		}
	case uint64:
		if slices.Contains(hexes, last) && x != 0 {
			return fmt.Sprintf("%#x", x), true
		}
	case uint32:
		if slices.Contains(hexes, last) {
			return fmt.Sprintf("%#x", x), true
		}
	case uint8:
		if words := names[last]; int(x) < len(words) && words[x] != "" {
			return fmt.Sprintf("%d (%s)", x, words[x]), true
		}
	}
	return "", false
}

// names are what small numbers mean, by field.
var names = map[string][]string{
	"Kind": {1: "TCP", 2: "RDMA"},
	"Link": {1: "Ethernet", 2: "InfiniBand"},
	"Why":  {wire.WaitNone: "nothing", wire.WaitReceive: "the peer's receive", wire.WaitSend: "the peer's send", wire.WaitPath: "what was sent"},
	"Root": {wire.RootUnknown: "unknown", wire.RootSilent: "a process that does not reply", wire.RootOutside: "something outside of the network", wire.RootBusy: "a process that is busy",
		wire.RootPath: "a path", wire.RootDown: "a machine that does not reply", wire.RootBroken: "a connection that has failed"},
	"MTU":   {1: "256 bytes", 2: "512 bytes", 3: "1024 bytes", 4: "2048 bytes", 5: "4096 bytes"},
	"State": {wire.ProbeWorks: "works", wire.ProbeGone: "gone", wire.ProbeSilent: "silent"},
}

// header is what is not 0 of it.
func header(h wire.Header) string {
	var all []string
	for _, f := range fields(struct {
		Lane, Hop              uint8
		Flags                  uint16
		Epoch                  uint32
		Session, Message, Comm uint64
	}{h.Lane, h.Hop, h.Flags, h.Epoch, h.Session, h.Message, h.Comm}) {
		if f.Value != "0" && f.Value != "none" {
			all = append(all, f.Name+" "+f.Value)
		}
	}
	if all == nil {
		return "zeros"
	}
	return strings.Join(all, "; ")
}

var flagNames = []struct {
	bit  uint16
	name string
}{{wire.FlagMore, "more"}, {wire.FlagVerbs, "verbs"}, {wire.FlagAnyOrder, "any order"}, {wire.FlagFinal, "final"}, {wire.FlagReuse, "reuse"}, {wire.FlagWaits, "waits"}}

func flags(x uint16) string {
	var set []string
	for _, f := range flagNames {
		if x&f.bit != 0 {
			set = append(set, f.name)
			x &^= f.bit
		}
	}
	if x != 0 {
		set = append(set, fmt.Sprintf("%#x", x))
	}
	if set == nil {
		return "none"
	}
	return strings.Join(set, ", ")
}
