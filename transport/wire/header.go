package wire

import "fmt"

// HeaderSize is the length of the header before every message after the proof.
const HeaderSize = 40

// Kind says which message follows a header.
type Kind uint8

// The messages of a handshake, and those of a control connection.
const (
	KindHello     Kind = 1
	KindInventory Kind = 2
	KindLanes     Kind = 3
	KindStream    Kind = 4
	KindGo        Kind = 5
	KindReject    Kind = 6
	KindSession   Kind = 7
	KindOffer     Kind = 8
	KindAnswer    Kind = 9
	KindPad       Kind = 10
	KindTaken     Kind = 11

	KindAttach  Kind = 16
	KindClosed  Kind = 17
	KindRefused Kind = 18
	KindFailed  Kind = 19
	KindBye     Kind = 20

	KindProbeOffer  Kind = 21
	KindProbeAnswer Kind = 22
	KindProbeState  Kind = 23

	KindFurther       Kind = 24
	KindFurtherAnswer Kind = 25
	KindJoin          Kind = 26
	KindJoined        Kind = 27

	KindWaitAsk   Kind = 28
	KindWaitReply Kind = 29
)

// Header is length 2 | kind 1 | version 1 | lane 1 | hop 1 | flags 2 | epoch 4 |
// reserved 4 | session 8 | message id 8 | comm 8. Recovery and relays need lane,
// epoch and hop; until then they are zero, and are carried all the same.
type Header struct {
	Lane    uint8
	Hop     uint8
	Flags   uint16
	Epoch   uint32
	Session uint64 // zero before the pair has a session
	Message uint64 // counts up per direction of a session; an answer or a resend repeats it
	Comm    uint64 // drawn by the connecting process, unique in its session
}

// FlagMore says that another frame of the same kind continues this one,
// FlagVerbs in a go that the comm runs on the offer answered last, FlagAnyOrder
// in an offer that its requests may arrive in any order, FlagFinal in an answer
// that the connection must not be made in another way either, FlagReuse in an
// offer that its lanes are those of a closed connection, named by session and
// comm, and in an answer that this alone is refused.
const (
	FlagMore     = 1
	FlagVerbs    = 2
	FlagAnyOrder = 4
	FlagFinal    = 8
	FlagReuse    = 16
	FlagWaits    = 32
)

// begin appends h with a length of zero; finish writes the length.
func (h *Header) begin(dst []byte, k Kind) []byte {
	dst = append(dst, 0, 0, byte(k), Version, h.Lane, h.Hop)
	dst = le.AppendUint16(dst, h.Flags)
	dst = le.AppendUint32(dst, h.Epoch)
	dst = le.AppendUint32(dst, 0)
	dst = le.AppendUint64(dst, h.Session)
	dst = le.AppendUint64(dst, h.Message)
	return le.AppendUint64(dst, h.Comm)
}

func finish(dst []byte, start int) []byte {
	le.PutUint16(dst[start:], uint16(len(dst)-start))
	return dst
}

// FrameLength returns the whole length of the frame whose first HeaderSize bytes
// are b, before anything of its body is read.
func FrameLength(b []byte) (int, error) {
	if len(b) < HeaderSize {
		return 0, malformed("header", "%d bytes", len(b))
	}
	n := int(le.Uint16(b))
	if n < HeaderSize || n > MaxFrame {
		return 0, malformed("header", "frame of %d bytes", n)
	}
	return n, nil
}

// KindOf returns the kind of a frame that FrameLength accepted.
func KindOf(b []byte) Kind { return Kind(b[2]) }

// open checks that frame is one whole message of kind k and returns its header
// and a cursor over its body.
func open(frame []byte, k Kind) (Header, cursor, error) {
	n, err := FrameLength(frame)
	if err != nil {
		return Header{}, cursor{}, err
	}
	c := cursor{rest: frame[2:]}
	kind, version := Kind(c.u8()), c.u8()
	if n != len(frame) || kind != k {
		return Header{}, cursor{}, malformed(k.String(), "%d bytes of kind %d, length field %d", len(frame), kind, n)
	}
	// A hello is how two versions meet, so it alone may be of another.
	if version != Version && k != KindHello {
		return Header{}, cursor{}, fmt.Errorf("%s: version %d, this build speaks %d: %w", k, version, Version, ErrVersion)
	}
	var h Header
	h.Lane, h.Hop, h.Flags, h.Epoch = c.u8(), c.u8(), c.u16(), c.u32()
	reserved := c.u32()
	h.Session, h.Message, h.Comm = c.u64(), c.u64(), c.u64()
	if reserved != 0 {
		return Header{}, cursor{}, malformed(k.String(), "reserved field is %#x", reserved)
	}
	return h, c, nil
}

// String names the message for errors.
func (k Kind) String() string {
	switch k {
	case KindHello:
		return "hello"
	case KindInventory:
		return "inventory"
	case KindLanes:
		return "lanes"
	case KindStream:
		return "stream"
	case KindGo:
		return "go"
	case KindReject:
		return "reject"
	case KindSession:
		return "session"
	case KindOffer:
		return "offer"
	case KindAnswer:
		return "answer"
	case KindPad:
		return "pad"
	case KindTaken:
		return "taken"
	case KindAttach:
		return "attach"
	case KindClosed:
		return "closed"
	case KindRefused:
		return "refused"
	case KindFailed:
		return "failed"
	case KindBye:
		return "bye"
	case KindProbeOffer:
		return "probe offer"
	case KindProbeAnswer:
		return "probe answer"
	case KindProbeState:
		return "probe state"
	case KindFurther:
		return "further lanes"
	case KindFurtherAnswer:
		return "answer to further lanes"
	case KindJoin:
		return "join"
	case KindJoined:
		return "joined"
	case KindWaitAsk:
		return "question about a wait"
	case KindWaitReply:
		return "reply about a wait"
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// Stamp writes the session and message id into a frame already appended.
func Stamp(frame []byte, session, message uint64) {
	le.PutUint64(frame[16:], session)
	le.PutUint64(frame[24:], message)
}
