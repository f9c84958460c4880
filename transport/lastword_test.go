package transport

import (
	"io"
	"strings"
	"testing"

	"weft/transport/wire"
)

// What a process said on one control connection is told where others end with it,
// in whatever order the two are read.
func TestLastWordIsHeard(t *testing.T) {
	const reason = "rxe0: packets of MTU 4096 are lost"
	for _, c := range []struct {
		name string
		last func(t *testing.T, broken, other io.WriteCloser, failed func(s *session) []byte, on [2]*session)
	}{
		{"on the same connection", func(t *testing.T, broken, other io.WriteCloser, failed func(*session) []byte, on [2]*session) {
			broken.Write(failed(on[0]))
			broken.Close()
			other.Close()
		}},
		{"on the other, which is read later", func(t *testing.T, broken, other io.WriteCloser, failed func(*session) []byte, on [2]*session) {
			broken.Close()
			<-on[0].heard
			other.Write(failed(on[1]))
			other.Close()
		}},
	} {
		for _, active := range []bool{true, false} {
			t.Run(c.name+map[bool]string{true: ", opened here", false: ", opened there"}[active], func(t *testing.T) {
				a := start(t, map[string]string{"WEFT_TIMEOUT": "3000"}) // that nothing depends on how fast this machine is
				peer := wire.Hello{Build: "test", Process: wire.ProcessID{1}}
				here, farHere := connPair(t)
				there, farThere := connPair(t)
				out, in := newSession(a.Core, here, &peer, nil, true), newSession(a.Core, there, &peer, nil, false)
				if _, err := a.sessions.get(t.Context(), peer.Process, func() (*session, error) { return out, nil }); err != nil {
					t.Fatal(err)
				}
				if err := a.sessions.claim(in); err != nil {
					t.Fatal(err)
				}
				for i, s := range []*session{out, in} {
					s.id = uint64(i + 1)
					go s.read(wire.NewReader(s.conn))
				}
				failed := func(s *session) []byte {
					b := (&wire.Failed{Header: wire.Header{Comm: 7}, Reason: reason}).Append(nil)
					wire.Stamp(b, s.id, 1)
					return b
				}
				if active {
					c.last(t, farHere, farThere, failed, [2]*session{out, in})
				} else {
					c.last(t, farThere, farHere, failed, [2]*session{in, out})
				}
				for _, s := range []*session{out, in} {
					eventually(t, "both have ended", func() bool { return s.over() != nil })
					if err := s.over(); !strings.Contains(err.Error(), "EOF, after the peer gave a connection up: "+reason+"; the peer's process ended") {
						t.Error(err)
					}
				}
			})
		}
	}
}
