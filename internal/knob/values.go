package knob

import "time"

// Origin says where a value comes from.
type Origin uint8

const (
	FromDefault     Origin = iota // unset, or set to nothing
	FromEnvironment               // set and legal
	Rejected                      // set to something illegal: the default is used
)

func (o Origin) String() string {
	return [...]string{"default", "environment", "default (the environment's value is not legal)"}[o]
}

type value struct {
	number int64
	second int64 // the upper port of a range
	text   string
	name   string // by which it is set; "" when it is not
	origin Origin
}

// Values are the knobs of one process, immutable after parsing.
type Values struct {
	all      [count]value
	problems []string
	notes    []string
}

// Defaults is what an empty environment gives.
func Defaults() *Values {
	v := new(Values)
	for id := range v.all {
		v.all[id].number = table[id].Default
	}
	return v
}

// Int is the value of a Number, Bits or Seconds knob; of a Switch 0 or 1.
func (v *Values) Int(id ID) int64 { return v.all[id].number }

// Text is the value of a Text or Choice knob; "" when unset.
func (v *Values) Text(id ID) string { return v.all[id].text }

// Name is the name by which id is set; "" when it is not.
func (v *Values) Name(id ID) string { return v.all[id].name }

// Seconds is the value of a Seconds knob.
func (v *Values) Seconds(id ID) time.Duration { return time.Duration(v.all[id].number) * time.Second }

// Ports is the value of a Ports knob: low <= high, or 0, 0 when unset.
func (v *Values) Ports(id ID) (low, high uint16) {
	return uint16(v.all[id].number), uint16(v.all[id].second)
}

// Origin says where the value of id comes from.
func (v *Values) Origin(id ID) Origin { return v.all[id].origin }

// Problems are lines for the log at WARN: rejected values and unknown names.
func (v *Values) Problems() []string { return v.problems }

// Notes are lines for the log at INFO, subsystem ENV: what the environment
// set, and what of it has no effect here.
func (v *Values) Notes() []string { return v.notes }
