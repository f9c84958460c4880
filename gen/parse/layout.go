package parse

import (
	"fmt"

	"modernc.org/cc/v4"
	"weft/gen/model"
)

// layOut sets offsets, size and alignment as the System V ABI does; aligns
// are what _Alignas asks of each member, 0 for nothing.
func layOut(r *model.Record, aligns []int64) {
	var end int64
	for i, f := range r.Fields {
		align := max(f.Type.Align, aligns[i])
		r.Align = max(r.Align, align)
		if !r.Union {
			f.Offset = up(end, align)
		}
		end = max(end, f.Offset+f.Type.Size)
	}
	r.Size = up(end, r.Align)
}

func up(n, align int64) int64 { return (n + align - 1) / align * align }

// flat lists the members of a record by name, those of anonymous members
// among them.
func flat(r *model.Record) []*model.Field {
	var fs []*model.Field
	for _, f := range r.Fields {
		if f.Name == "" {
			fs = append(fs, flat(f.Type.Record)...)
		} else {
			fs = append(fs, f)
		}
	}
	return fs
}

// witness requires cc's own layout of a record to be the model's: two
// computations that differ mean that something was misread.
func witness(r *model.Record, n *cc.StructOrUnionSpecifier) {
	if what := differs(r, n.Type()); what != "" {
		refuse(n, "two computations of the layout disagree: %s", what)
	}
}

type recordType interface {
	cc.Type
	NumFields() int
	FieldByIndex(int) *cc.Field
}

func differs(r *model.Record, t cc.Type) string {
	ct, ok := t.(recordType)
	if !ok {
		return fmt.Sprintf("the parser takes it for %v", t)
	}
	if ct.Size() != r.Size || int64(ct.Align()) != r.Align || ct.NumFields() != len(r.Fields) {
		return fmt.Sprintf("%d members, size %d, alignment %d; the parser has %d, %d, %d",
			len(r.Fields), r.Size, r.Align, ct.NumFields(), ct.Size(), ct.Align())
	}
	for i, f := range r.Fields {
		c := ct.FieldByIndex(i)
		if c == nil || c.Name() != f.Name || c.Type().Size() != f.Type.Size {
			return fmt.Sprintf("member %d, %s", i, f.Name)
		}
		if f.Type.Record != nil {
			if what := differs(f.Type.Record, c.Type()); what != "" {
				return f.Name + ": " + what
			}
		}
	}
	return offsets(r, ct)
}

// offsets compares offsets. For members of anonymous members cc counts from
// the outermost record, or not, depending on how they are reached; so only
// those with a name of their own are looked at.
func offsets(r *model.Record, ct recordType) string {
	for i, f := range r.Fields {
		if c := ct.FieldByIndex(i); f.Name != "" && c.Offset() != f.Offset {
			return fmt.Sprintf("%s is at %d; the parser has %d", f.Name, f.Offset, c.Offset())
		}
	}
	return ""
}
