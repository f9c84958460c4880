package wire

const (
	maxHost  = 64
	maxBuild = 64
	maxName  = 32
)

// Hello is the first message of each side after the proof: who speaks, from
// which build, on which device. Its layout never changes, so that two versions
// can name each other. Speaks is the version in the sender's header.
type Hello struct {
	Header
	Speaks  uint8
	Device  uint16
	PID     uint32
	Process ProcessID
	Host    string
	Build   string
	Name    string // of the device
}

// Append writes m with this build's version.
func (m *Hello) Append(dst []byte) []byte {
	start := len(dst)
	dst = m.begin(dst, KindHello)
	dst[start+3] = m.Speaks
	dst = le.AppendUint16(dst, m.Device)
	dst = le.AppendUint32(dst, m.PID)
	dst = append(dst, m.Process[:]...)
	dst = appendText(dst, m.Host, maxHost)
	dst = appendText(dst, m.Build, maxBuild)
	dst = appendText(dst, m.Name, maxName)
	return finish(dst, start)
}

// ParseHello reads a hello of any version.
func ParseHello(frame []byte) (Hello, error) {
	h, c, err := open(frame, KindHello)
	if err != nil {
		return Hello{}, err
	}
	m := Hello{Header: h, Speaks: frame[3], Device: c.u16(), PID: c.u32()}
	c.copy(m.Process[:])
	m.Host, m.Build, m.Name = c.text(maxHost), c.text(maxBuild), c.text(maxName)
	// What a later version adds at the end is not ours to judge.
	if c.bad || (m.Speaks == Version && len(c.rest) != 0) {
		return Hello{}, malformed("hello", "fields do not fill its %d bytes", len(frame))
	}
	return m, nil
}
