package link

import "path/filepath"

// Dist is the folder that make fills. Libraries and programs are apart in it: with
// NCCL_NET_PLUGIN=weft some releases of NCCL call dlopen("weft") first, and a
// program of that name on LD_LIBRARY_PATH is what they would find.
type Dist string

// Libraries is the folder for LD_LIBRARY_PATH.
func (d Dist) Libraries() string { return filepath.Join(string(d), "lib") }

// Library is the path of the library.
func (d Dist) Library() string { return filepath.Join(d.Libraries(), Name) }

// Program is the path of a program: weft, weft-host.
func (d Dist) Program(name string) string { return filepath.Join(string(d), "bin", name) }
