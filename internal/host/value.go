package host

import "fmt"

// DataType is ncclDataType_t.
type DataType int

// RedOp is ncclRedOp_t.
type RedOp int

// The operations that a plugin is asked for: an average reaches it as a sum.
const (
	Sum RedOp = iota
	Prod
	Max
	Min
)

// RedOps are all of them, by nccl-tests' names.
var RedOps = [...]string{"sum", "prod", "max", "min"}

// Float32 is nccl-tests' default type, Int8 what bytes are.
const (
	Int8    DataType = 0
	Float32 DataType = 7
)

// DataTypes are all types, by nccl-tests' names, and the bytes of each.
var DataTypes = [...]struct {
	Name string
	Size int64
}{{"int8", 1}, {"uint8", 1}, {"int32", 4}, {"uint32", 4}, {"int64", 8}, {"uint64", 8}, {"half", 2}, {"float", 4}, {"double", 8}, {"bfloat16", 2}, {"f8e4m3", 1}, {"f8e5m2", 1}}

// Size is the bytes of an element.
func (t DataType) Size() int64 { return DataTypes[t].Size }

func (t DataType) String() string {
	if t < 0 || int(t) >= len(DataTypes) {
		return fmt.Sprintf("type %d", int(t))
	}
	return DataTypes[t].Name
}

func (op RedOp) String() string {
	if op < 0 || int(op) >= len(RedOps) {
		return fmt.Sprintf("operation %d", int(op))
	}
	return RedOps[op]
}

// Values name the elements of a collective: what each rank gives, and so what all come to.
type Values struct {
	Type   DataType
	Op     RedOp
	Ranks  int
	Seed   uint64
	OfRank int // of whom values are looked for; All: the result over all ranks
}

// All ranks' values, reduced.
const All = -1

func (v Values) args(addr Ptr, first, count int64) Args {
	return Args{"addr", addr, "type", int(v.Type), "op", int(v.Op), "nranks", v.Ranks, "seed", v.Seed, "first", first, "count", count}
}

// FillValues writes a rank's elements first to first+count.
func (h *Host) FillValues(addr Ptr, v Values, rank int, first, count int64) error {
	_, err := h.Call("main", "value.fill", append(v.args(addr, first, count), "rank", rank))
	return err
}

// CheckValues tells how many elements are wrong; ulp is the largest distance from the exact result, in units of its last place.
func (h *Host) CheckValues(addr Ptr, v Values, first, count int64) (ulp float64, err error) {
	r, err := h.Call("main", "value.check", append(v.args(addr, first, count), "of", v.OfRank))
	if err != nil {
		return 0, err
	}
	if bad := r.Int("bad"); bad != 0 {
		return 0, fmt.Errorf("%s: %d of %d elements are wrong, the first is number %d", h.opts.Name, bad, count, r.Int("first"))
	}
	return r.Float("ulp"), nil
}
