package machine

import (
	"encoding/binary"
	"io/fs"
	"path"
)

// ACS is the control word of Access Control Services of a bridge, and whether it could be read: only root may read that far.
func (m *Machine) ACS(bridge string) (control uint16, known bool) {
	name := path.Join(bridge, "config")
	m.at.Store(name)
	at, err := m.resolve(name)
	if err != nil {
		return 0, false
	}
	config, err := fs.ReadFile(m.fs, on(at))
	if err != nil || len(config) < extended+4 {
		if err == nil {
			m.shown.refuse(name+" beyond its first bytes", fs.ErrPermission)
		} else {
			m.shown.refuse(name, err)
		}
		return 0, false
	}
	control, at2 := findACS(config)
	m.shown.file(at, onlyACS(control, at2 > 0))
	return control, true
}

// P2P are the bits of the control word that send what one device says to another up to the root: request and completion redirect,
// and upstream forwarding.
const P2P = 1<<2 | 1<<3 | 1<<4

const (
	extended = 0x100 // where the extended capabilities begin
	idACS    = 0x000d
)

// findACS walks the chain of extended capabilities; at 0: there is none.
func findACS(config []byte) (control uint16, at int) {
	le := binary.LittleEndian
	for at, steps := extended, 0; at >= extended && at+8 <= len(config) && steps < 1024; steps++ {
		head := le.Uint32(config[at:])
		if head&0xffff == idACS {
			return le.Uint16(config[at+6:]), at
		}
		at = int(head >> 20)
	}
	return 0, 0
}

// onlyACS is a configuration that says nothing else: serial numbers stand in the real one.
func onlyACS(control uint16, has bool) []byte {
	config := make([]byte, extended+8)
	if has {
		binary.LittleEndian.PutUint32(config[extended:], idACS|1<<16)
		binary.LittleEndian.PutUint16(config[extended+6:], control)
	}
	return config
}
