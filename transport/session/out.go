package session

import (
	"runtime"

	"golang.org/x/sys/unix"

	"weft/internal/report"
	"weft/transport/rendezvous"
	"weft/transport/task"
	"weft/transport/wire"
)

// Frame is a message that a session can send.
type Frame interface{ Append([]byte) []byte }

const outLimit = 1 << 20 // bytes waiting for a peer that does not read

// Tell sends m and returns when it is with the kernel, or with a goroutine that
// is sending already. A session that is over swallows it.
func (s *Session) Tell(m Frame) {
	if s.enqueue(m, false) {
		s.flush()
	}
}

// TellTogether sends m with what others tell in the same moment, in one packet. When
// it returns, m is where Tell has it, or one of the others is about to send it.
func (s *Session) TellTogether(m Frame) {
	if !s.enqueue(m, true) {
		return
	}
	runtime.Gosched()
	s.out.Lock()
	mine := s.out.gathers
	s.out.gathers = false
	s.out.Unlock()
	if mine { // else one that is in a hurry has written, or another of those that gather does
		s.flush()
	}
}

// TellLater sends m without waiting for the socket: for the host's threads. What
// the kernel takes is with it when the call returns: the host may end the process
// at once, and without its exit handlers, when it hears of an error.
func (s *Session) TellLater(m Frame) {
	if s.enqueue(m, false) && !s.flushNow() {
		go s.flush()
	}
}

// TellFailed has the peer end its side too. A comm that is not attached yet, m
// nil, tells it then.
func (m *Member) TellFailed(reason string, aborted bool) {
	if m != nil {
		m.Session.TellLater(&wire.Failed{Header: m.Header(), Aborted: aborted, Reason: reason})
	}
}

// flushNow writes what the socket takes, on behalf of the caller that is to flush,
// and reports whether that was all. Errors of the socket are left to flush.
func (s *Session) flushNow() bool {
	raw, err := s.Conn.SyscallConn()
	if err != nil {
		return false
	}
	s.out.Lock()
	defer s.out.Unlock()
	n := 0
	_ = raw.Write(func(fd uintptr) bool { // a closed socket takes nothing
		n, err = unix.SendmsgN(int(fd), s.out.queue, nil, nil, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
		return true
	})
	if err == nil && n > 0 {
		s.out.queue = s.out.queue[:copy(s.out.queue, s.out.queue[n:])]
	}
	if len(s.out.queue) > 0 {
		return false
	}
	s.out.writing = false
	s.all.cfg.Lingers(-1)
	return true
}

// enqueue appends m, numbered, and reports whether the caller is the one to flush; one
// that gathers lets others join before. A process that exits before that is done waits
// for it a moment, so that its peer hears why.
func (s *Session) enqueue(m Frame, gathers bool) bool {
	s.out.Lock()
	defer s.out.Unlock()
	if len(s.out.queue) > outLimit {
		go s.flooded(len(s.out.queue))
		return false
	}
	start := len(s.out.queue)
	s.out.queue = m.Append(s.out.queue)
	s.out.message++
	wire.Stamp(s.out.queue[start:], s.ID, s.out.message)
	if s.out.writing && (gathers || !s.out.gathers) {
		return false
	}
	if !s.out.writing {
		s.all.cfg.Lingers(1)
	}
	s.out.writing, s.out.gathers = true, gathers
	return true
}

// flooded ends a session whose peer reads nothing.
func (s *Session) flooded(bytes int) {
	defer task.Rescue(s.all.cfg.Log, "control connection", task.Nobody)
	s.End(report.Errorf(report.Peer, "control connection", "%d bytes of messages wait for a peer that reads nothing", bytes).With(s.Name).
		Try("see whether its process hangs or is stopped"))
}

func (s *Session) flush() {
	defer s.all.cfg.Lingers(-1)
	defer task.Rescue(s.all.cfg.Log, "control connection", func(err error) {
		s.End(report.Errorf(report.Internal, "control connection", "%w", err).With(s.Name))
	})
	for {
		s.out.Lock()
		b := s.out.queue
		if len(b) == 0 {
			s.out.writing = false
			s.out.Unlock()
			return
		}
		s.out.queue = s.out.spare[:0]
		s.out.Unlock()
		_, err := s.Conn.Write(b)
		s.out.Lock()
		s.out.spare = b[:0]
		s.out.Unlock()
		if err != nil {
			if !rendezvous.PeerGone(err) { // else reading comes to the end, past what the peer said before
				s.End(s.Broken("sending", err))
			}
			return // writing stays set: nothing is sent any more
		}
	}
}
