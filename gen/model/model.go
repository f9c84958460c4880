// Package model is what the generator knows about a set of C headers: plain
// data in source order, with every typedef name kept as the header spells it.
package model

import (
	"fmt"
	"regexp"
)

// Kind says what a type is once its typedefs are followed.
type Kind uint8

// The kinds. Anything else a header may contain is refused by the parser.
const (
	Void Kind = iota + 1
	Bool
	Int     // signed integer of Size bytes
	Uint    // unsigned integer of Size bytes
	Float   // IEEE floating point of Size bytes
	Pointer // to Elem
	Array   // of Len Elem
	Struct  // Record
	Union   // Record
	Enumeration
	Function // Func; occurs only behind a Pointer
)

var kindNames = [...]string{"none", "void", "bool", "int", "uint", "float", "pointer", "array", "struct", "union", "enum", "function"}

func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// Pos is a place in a header; File is relative to the folder of headers.
type Pos struct {
	File string
	Line int
	Col  int
}

func (p Pos) String() string { return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Col) }

// Type is one use of a type.
//
// Name is the spelling: a typedef name ("size_t", "ncclNetProperties_v12_t"),
// a basic type ("unsigned int") or a tag ("struct wf_comm"). It is empty for
// what C spells by construction (pointers, arrays, functions) and for a record
// or an enumeration declared in place. A typedef of a pointer or of a function
// pointer has both a Name and an Elem.
type Type struct {
	Kind   Kind
	Name   string
	Const  bool
	Size   int64 // 0: void, function, incomplete
	Align  int64
	Elem   *Type   // Pointer, Array
	Len    int64   // Array
	Record *Record // Struct, Union; shared by all uses of the same record
	Enum   *Enum   // Enumeration
	Func   *Func   // Function
}

// IsFuncPtr reports whether t is a pointer to a function.
func (t *Type) IsFuncPtr() bool { return t.Kind == Pointer && t.Elem.Kind == Function }

// IsPtrTo reports whether t is a pointer to a type of kind k.
func (t *Type) IsPtrTo(k Kind) bool { return t.Kind == Pointer && t.Elem.Kind == k }

// Walk calls visit for t and, as long as visit says so, for the types that it is made of, in their order; a record's fields once.
func (t *Type) Walk(visit func(*Type) (deeper bool)) {
	records := map[*Record]bool{}
	var walk func(*Type)
	walk = func(x *Type) {
		if x == nil || !visit(x) {
			return
		}
		walk(x.Elem)
		if f := x.Func; f != nil {
			walk(f.Result)
			for _, p := range f.Params {
				walk(p.Type)
			}
		}
		if r := x.Record; r != nil && !records[r] {
			records[r] = true
			for _, f := range r.Fields {
				walk(f.Type)
			}
		}
	}
	walk(t)
}

// Record is a struct or a union.
type Record struct {
	Name       string // first typedef name, else "struct tag"; empty when declared in place
	Tag        string // the tag alone; may be empty
	Union      bool
	Incomplete bool // declared only: usable behind a pointer
	Size       int64
	Align      int64
	Fields     []*Field
	Doc        string
	Pos        Pos
}

// Field returns the field called name, looking through anonymous members.
// The second result is its offset from the beginning of r.
func (r *Record) Field(name string) (*Field, int64) {
	for _, f := range r.Fields {
		if f.Name == name {
			return f, f.Offset
		}
		if f.Name == "" && f.Type.Record != nil {
			if g, off := f.Type.Record.Field(name); g != nil {
				return g, f.Offset + off
			}
		}
	}
	return nil, 0
}

// Field is a member. Name is empty for an anonymous struct or union, whose
// own fields carry offsets relative to it.
type Field struct {
	Name   string
	Type   *Type
	Offset int64 // relative to the record that declares it
	Doc    string
	Pos    Pos
}

// Func is a function: a prototype (Name and Pos set) or a function type.
type Func struct {
	Name     string
	Result   *Type
	Params   []*Param
	Variadic bool
	Doc      string
	Pos      Pos
}

// Param returns the parameter called name, or nil.
func (f *Func) Param(name string) *Param {
	for _, p := range f.Params {
		if p.Name == name {
			return p
		}
	}
	return nil
}

// Param is a parameter. Name is empty when the header gives none. An array
// parameter ("void* handles[]") is the pointer that it decays to.
type Param struct {
	Name string
	Type *Type
	Pos  Pos
}

// Enum is an enumeration. All of ours are 4 bytes wide.
type Enum struct {
	Name   string // first typedef name, else "enum tag"; empty when neither
	Tag    string
	Size   int64
	Signed bool
	Values []*EnumValue
	Doc    string
	Pos    Pos
}

// Value returns the enumerator called name, or nil.
func (e *Enum) Value(name string) *EnumValue {
	for _, v := range e.Values {
		if v.Name == name {
			return v
		}
	}
	return nil
}

// EnumValue is one enumerator.
type EnumValue struct {
	Name  string
	Value int64
	Doc   string
	Pos   Pos
}

// MacroKind is the kind of value an object-like macro has.
type MacroKind uint8

// A macro that has no value of its own (a guard, an attribute, a fragment of
// code) is MacroText.
const (
	MacroText MacroKind = iota + 1
	MacroInt
	MacroUint
	MacroString
)

// Macro is an object-like macro.
type Macro struct {
	Name string
	Kind MacroKind
	Int  int64  // MacroInt
	Uint uint64 // MacroUint
	Str  string // MacroString: its value
	Text string // the replacement as written, single-spaced
	Doc  string
	Pos  Pos
}

// IsLimit reports whether a macro is a limit or a flag of plugins, and not just
// another name for one.
func (m *Macro) IsLimit() bool {
	return pluginMacro.MatchString(m.Name) && !identifier.MatchString(m.Text)
}

var identifier = regexp.MustCompile(`^[A-Za-z_]\w*$`)

// Typedef is a typedef in source order, aliases included.
type Typedef struct {
	Name string
	Type *Type // as written: for an alias its Name is the aliased name
	Doc  string
	Pos  Pos
}

// Table is one versioned plugin table, such as ncclNet_v12_t.
type Table struct {
	Family  Family
	Version int
	Symbol  string
	Record  *Record
	Header  string // "nccl/net_v12.h"
}

// Unit is everything parsed from one set of headers. The lists are in source
// order, but Tables, which go by family and then by version, oldest first.
type Unit struct {
	Tables   []*Table
	Records  []*Record // named ones, each once, under their first name
	Enums    []*Enum
	Typedefs []*Typedef
	Funcs    []*Func
	Macros   []*Macro
}

// Table returns a table, or nil.
func (u *Unit) Table(f Family, version int) *Table {
	for _, t := range u.Tables {
		if t.Family == f && t.Version == version {
			return t
		}
	}
	return nil
}

// Newest returns the newest table of a family, or nil.
func (u *Unit) Newest(f Family) *Table {
	var newest *Table
	for _, t := range u.Tables {
		if t.Family == f {
			newest = t
		}
	}
	return newest
}

// Record returns the record with that first name or tag name, following
// typedef aliases; nil when there is none.
func (u *Unit) Record(name string) *Record {
	for _, r := range u.Records {
		if r.Name == name || (r.Tag != "" && name == r.TagName()) {
			return r
		}
	}
	if t := u.Typedef(name); t != nil {
		return t.Type.Record
	}
	return nil
}

// TagName returns "struct tag" or "union tag"; empty without a tag.
func (r *Record) TagName() string {
	switch {
	case r.Tag == "":
		return ""
	case r.Union:
		return "union " + r.Tag
	}
	return "struct " + r.Tag
}

// Typedef returns the typedef called name, or nil.
func (u *Unit) Typedef(name string) *Typedef {
	for _, t := range u.Typedefs {
		if t.Name == name {
			return t
		}
	}
	return nil
}

// Enum returns the enumeration with that name, tag or typedef, or nil.
func (u *Unit) Enum(name string) *Enum {
	for _, e := range u.Enums {
		if e.Name == name || (e.Tag != "" && name == "enum "+e.Tag) {
			return e
		}
	}
	if t := u.Typedef(name); t != nil {
		return t.Type.Enum
	}
	return nil
}

// Func returns the prototype called name, or nil.
func (u *Unit) Func(name string) *Func {
	for _, f := range u.Funcs {
		if f.Name == name {
			return f
		}
	}
	return nil
}

// Macro returns the macro called name, or nil.
func (u *Unit) Macro(name string) *Macro {
	for _, m := range u.Macros {
		if m.Name == name {
			return m
		}
	}
	return nil
}
