package wire

// WaitAsk asks what the process at the other end of a comm has done for it, and
// what it waits for itself.
type WaitAsk struct {
	Header
}

// WaitReply says so, of the same comm.
type WaitReply struct {
	Header
	Groups   uint64 // that its host has begun on the comm: posted, or sent
	Asks     bool   // its host asks there for what does not come
	Lacks    bool   // a sender: for a receive
	Owes     bool   // a sender: it has sent what has not left yet
	Moves    bool   // something goes on, on other comms of its process
	Monitors bool   // it knows what it waits for; else all that follows is 0

	Why     uint8  // WaitNone, or what its longest wait is for
	Millis  uint32 // of that wait
	For     string // the process that it waits for
	Root    uint8  // RootUnknown, or the root cause of that
	RootAge uint32 // milliseconds since whoever found that out saw it last
	RootWho string // a process; of a path or a connection, its two
}

// What a process waits for.
const (
	WaitNone    = 0
	WaitReceive = 1 // the peer's receive, for a send
	WaitSend    = 2 // the peer's send, for a receive
	WaitPath    = 3 // what was sent
	waitMost    = WaitPath
)

// The root causes of waits, as far as somebody in the chain knows.
const (
	RootUnknown = 0
	RootSilent  = 1 // a process that does not reply, though its machine does
	RootOutside = 2 // a process that waits for nobody: what keeps it is outside of the network
	RootBusy    = 3 // one of which other comms move
	RootPath    = 4 // the path between two processes
	RootDown    = 5 // a process whose machine does not reply either
	RootBroken  = 6 // a connection that has failed, and both sides of which wait for nobody
	rootMost    = RootBroken
)

const maxWho = 2*maxHost + 32

// Append writes m.
func (m *WaitAsk) Append(dst []byte) []byte {
	start := len(dst)
	return finish(m.begin(dst, KindWaitAsk), start)
}

// ParseWaitAsk reads a question about a wait.
func ParseWaitAsk(frame []byte) (WaitAsk, error) {
	h, c, err := open(frame, KindWaitAsk)
	if err != nil {
		return WaitAsk{}, err
	}
	if !c.done() {
		return WaitAsk{}, malformed("question about a wait", "%d bytes", len(frame))
	}
	return WaitAsk{Header: h}, nil
}

const (
	waitAsks = 1 << iota
	waitLacks
	waitOwes
	waitMoves
	waitMonitors
	waitBits = waitAsks | waitLacks | waitOwes | waitMoves | waitMonitors
)

// Append writes m.
func (m *WaitReply) Append(dst []byte) []byte {
	start := len(dst)
	bits := bit(m.Asks, waitAsks) | bit(m.Lacks, waitLacks) | bit(m.Owes, waitOwes) | bit(m.Moves, waitMoves) | bit(m.Monitors, waitMonitors)
	dst = append(le.AppendUint64(m.begin(dst, KindWaitReply), m.Groups), bits, m.Why)
	dst = appendText(le.AppendUint32(dst, m.Millis), m.For, maxWho)
	dst = le.AppendUint32(append(dst, m.Root), m.RootAge)
	return finish(appendText(dst, m.RootWho, maxWho), start)
}

func bit(is bool, b byte) byte {
	if is {
		return b
	}
	return 0
}

// ParseWaitReply reads a reply about a wait.
func ParseWaitReply(frame []byte) (WaitReply, error) {
	h, c, err := open(frame, KindWaitReply)
	if err != nil {
		return WaitReply{}, err
	}
	m := WaitReply{Header: h, Groups: c.u64()}
	bits := c.u8()
	m.Asks, m.Lacks, m.Owes, m.Monitors = bits&waitAsks != 0, bits&waitLacks != 0, bits&waitOwes != 0, bits&waitMonitors != 0
	m.Moves = bits&waitMoves != 0
	m.Why, m.Millis, m.For = c.u8(), c.u32(), c.text(maxWho)
	m.Root, m.RootAge, m.RootWho = c.u8(), c.u32(), c.text(maxWho)
	if !c.done() || bits&^waitBits != 0 || m.Why > waitMost || m.Root > rootMost ||
		(m.Why == WaitNone) != (m.For == "") || (m.Root == RootUnknown) != (m.RootWho == "") {
		return WaitReply{}, malformed("reply about a wait", "bits %#x, for %d of %q, from %d of %q, in %d bytes", bits, m.Why, m.For, m.Root, m.RootWho, len(frame))
	}
	return m, nil
}
