// Package facts reads what was measured in the headers and loaders of NCCL's
// releases, 2.4.2 to 2.32.3, by compiling them; the data is the witness for
// headers/nccl and for the emulation of releases. The row of 2.32.3 is what
// NCCLX's tree on that release shows: its own was not at hand. Which tuners 2.31.2
// and 2.32.3 look for follows from the notes of 2.32.6, with which v7 begins.
package facts

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
)

// Type is the layout of one versioned type.
type Type struct {
	Type    string   `json:"type"`
	Kind    string   `json:"kind"` // struct, union, enum, callback
	Size    int64    `json:"size"`
	Alias   string   `json:"alias"` // what it is a typedef of; for a callback, its C type
	Members []Member `json:"members"`
}

// Member is a field, those of nested structs among them by path.
type Member struct {
	Member string `json:"member"`
	Offset int64  `json:"offset"`
	Size   int64  `json:"size"`
	Type   string `json:"type"` // as C spells it; "struct" or "union" when declared in place
}

// Enum is the newest edition of an enumeration. "enum:first" has no name.
type Enum struct {
	Enum   string           `json:"enum"`
	Size   int64            `json:"size"`
	Values map[string]int64 `json:"values"`
}

// Macro is the newest value of a macro.
type Macro struct {
	Macro string `json:"macro"`
	Value int64  `json:"value"`
}

// Release is what one release of NCCL looks for in a plugin, and its limits.
type Release struct {
	Release    string           `json:"release"` // "2.30.7"
	Tag        string           `json:"tag"`
	Date       string           `json:"date"`
	Net        []int            `json:"net"` // versions in the order of lookup
	CollNet    []int            `json:"collNet"`
	Profiler   []int            `json:"profiler"`
	Tuner      []int            `json:"tuner"`
	Env        []string         `json:"env"` // variables that name a plugin
	Limits     map[string]int64 `json:"limits"`
	LastResult int32            `json:"lastResult"` // largest ncclResult_t it knows
	Subsystems uint64           `json:"subsystems"` // log subsystems it knows, a set
	DataTypes  int              `json:"dataTypes"`
	RedOps     int              `json:"redOps"`
}

// Types reads types.json; fsys is headers.FS, as for all readers here.
func Types(fsys fs.FS) ([]Type, error) { return read[Type](fsys, "types") }

// Enums reads enums.json.
func Enums(fsys fs.FS) ([]Enum, error) { return read[Enum](fsys, "enums") }

// Macros reads macros.json.
func Macros(fsys fs.FS) ([]Macro, error) { return read[Macro](fsys, "macros") }

// Releases reads releases.json, oldest first.
func Releases(fsys fs.FS) ([]Release, error) { return read[Release](fsys, "releases") }

func read[T any](fsys fs.FS, name string) ([]T, error) {
	path := "facts/" + name + ".json"
	data, err := fs.ReadFile(fsys, path)
	if err != nil {
		return nil, fmt.Errorf("read facts: %w", err)
	}
	var list []T
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&list); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return list, nil
}
