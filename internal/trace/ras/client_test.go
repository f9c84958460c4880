package ras

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// server replies to each line that comes with what reply returns, and closes after the
// last one of a script.
func server(t *testing.T, script ...string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go serve(c, script)
		}
	}()
	return l.Addr().String()
}

func serve(c net.Conn, script []string) {
	defer c.Close()
	buf := make([]byte, 256)
	for _, reply := range script {
		if _, err := c.Read(buf); err != nil {
			return
		}
		if _, err := io.WriteString(c, reply); err != nil {
			return
		}
	}
}

const greets = "SERVER PROTOCOL 2\n"

func TestAsk(t *testing.T) {
	fine := answered(`{"rank":0}`, "")
	late := answered(`{"rank":0,"collective_counts":{"AllReduce":5}},{"rank":1,"collective_counts":{"AllReduce":4}}`, "")
	for _, c := range []struct {
		what   string
		script []string
		want   string // of the error, or of the findings
	}{
		{"JSON", []string{greets, "OK\n", fine}, ""},
		{"text", []string{greets, "ERROR: Unknown command set format json\n", said("", "")}, ""},
		{"somebody is behind twice", []string{greets, "OK\n", late}, "behind in 0xab, AllReduce: rank 1 (4 of 5)"},
		{"another service", []string{"SSH-2.0-OpenSSH_9.6\r\n"}, `it is no RAS service: it says "SSH-2.0-OpenSSH_9.6"`},
		{"a terminal's steering", []string{"\x1b[2J\n"}, `it says "?[2J"`},
		{"closed at once", []string{}, `instead of a reply to "CLIENT PROTOCOL 2"`},
		{"a line without end", []string{strings.Repeat("x", 2*line)}, "buffer full"},
		{"closed instead of the answer", []string{greets, "OK\n", ""}, "without an answer"},
		{"half an answer", []string{greets, "OK\n", fine[:40]}, "not the JSON"},
		{"half a text", []string{greets, "ERROR: no\n", said("", "")[:60]}, "ends before"},
	} {
		a, err := Ask(t.Context(), server(t, c.script...))
		switch {
		case err != nil && (c.want == "" || !strings.Contains(err.Error(), c.want)), err == nil && strings.Join((&Section{Answer: a}).Lines(), "") != c.want:
			t.Errorf("%s: %+v, %v, want %q", c.what, a, err, c.want)
		}
	}
}

func TestNobodyListens(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	if _, err := Ask(t.Context(), l.Addr().String()); err == nil || !strings.Contains(err.Error(), "nobody listens at "+l.Addr().String()) {
		t.Errorf("%v", err)
	}
}

// A process of several that listen at a port is stopped: another is found.
func TestSecondConnection(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		stopped, err := l.Accept()
		if err != nil {
			return
		}
		defer stopped.Close()
		if c, err := l.Accept(); err == nil {
			serve(c, []string{greets, "OK\n", answered("", "")})
		}
	}()
	if _, err := Ask(t.Context(), l.Addr().String()); err != nil {
		t.Error(err)
	}
}

// One that says nothing holds nobody up for longer than the caller waits.
func TestSilentServer(t *testing.T) {
	stop := make(chan struct{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	defer close(stop)
	go func() {
		if c, err := l.Accept(); err == nil {
			<-stop
			c.Close()
		}
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := Ask(ctx, l.Addr().String()); err == nil {
		t.Error("an answer of nobody")
	}
}

// endless agrees to JSON, and does not end.
type endless struct {
	head io.Reader
	read int
}

func (e *endless) Write(b []byte) (int, error) { return len(b), nil }

func (e *endless) Read(b []byte) (int, error) {
	n, err := e.head.Read(b)
	if errors.Is(err, io.EOF) {
		n = copy(b, bytes.Repeat([]byte("["), len(b)))
	}
	e.read += n
	return n, nil
}

func TestEndlessAnswer(t *testing.T) {
	e := &endless{head: strings.NewReader("OK\n")}
	if _, err := status(e, bufio.NewReaderSize(e, line)); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("more than %d MiB", longest>>20)) {
		t.Errorf("%v", err)
	}
	if e.read > longest+2*line {
		t.Errorf("%d bytes were read", e.read)
	}
}
