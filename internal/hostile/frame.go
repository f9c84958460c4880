package hostile

import "encoding/binary"

// The kinds of frames on a stream (transport/tcp/stream.h).
const (
	FrameCTS   = 2
	FrameData  = 3
	FrameAhead = 4
)

// Frame is the header of one on a stream.
type Frame struct {
	Kind, Entry, Lane, Hop uint8
	Epoch, Flags           uint16
	Len, Size              uint32
	Offset, Seq            uint64
}

// FrameSize is its length.
const FrameSize = 32

// Append writes f.
func (f *Frame) Append(dst []byte) []byte {
	dst = append(dst, f.Kind, f.Entry, f.Lane, f.Hop)
	dst = binary.LittleEndian.AppendUint16(dst, f.Epoch)
	dst = binary.LittleEndian.AppendUint16(dst, f.Flags)
	dst = binary.LittleEndian.AppendUint32(dst, f.Len)
	dst = binary.LittleEndian.AppendUint32(dst, f.Size)
	dst = binary.LittleEndian.AppendUint64(dst, f.Offset)
	return binary.LittleEndian.AppendUint64(dst, f.Seq)
}
