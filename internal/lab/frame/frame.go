// Package frame is what a lab's machines and the process that owns them say to each other over a serial port: one JSON
// object a line, in both directions.
package frame

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"sync"
)

// Port is the name of the serial port in the machine.
const Port = "weft.lab"

// Argument is what the kernel passes to its first process, so that weft knows its role there.
const Argument = "lab-guest"

// Down is from the owner to a machine. One field is set, and ID with Run and Signal.
type Down struct {
	Setup  *Setup `json:",omitempty"`
	ID     int    `json:",omitempty"`
	Run    *Run   `json:",omitempty"`
	Signal int    `json:",omitempty"` // to the process group of a Run
	Off    bool   `json:",omitempty"` // power off at once
}

// Up is from a machine to its owner.
type Up struct {
	Hello  *Hello  `json:",omitempty"` // first: the machine waits for Setup
	Ready  *Ready  `json:",omitempty"` // Setup is done
	Failed string  `json:",omitempty"` // Setup failed; the machine is of no use
	ID     int     `json:",omitempty"`
	Stream int     `json:",omitempty"` // 1 or 2, with Data
	Data   []byte  `json:",omitempty"`
	Exit   *Status `json:",omitempty"`
}

// Setup makes a node of a machine.
type Setup struct {
	Name   string
	Mounts []Mount // folders of the host, writable, at their own paths
	NICs   []NIC
	Policy bool // one network namespace with both ends of its cables: route by device
}

// Mount is a 9p share.
type Mount struct{ Tag, Path string }

// NIC is an interface to bring up, with an RDMA device on it.
type NIC struct {
	Name   string
	MAC    string // of a network card of the machine, which gets Name
	Peer   string // instead: the other end of a veth pair to make
	Prefix string // 192.168.100.1/24
	MTU    int
	RDMA   string // name of the RDMA device
	Table  int    // of routes, when Setup.Policy
}

// Hello tells how long the machine took, in seconds since its kernel began.
type Hello struct{ Kernel, Modules, Root float64 }

// Ready is the same for the rest.
type Ready struct{ Network float64 }

// Run starts a program; without Args[0] there is none.
type Run struct {
	Args []string
	Env  []string
	Dir  string
}

// Status is how a program ended.
type Status struct {
	Code  int    // as a shell has it: 128 and the signal when killed by one
	Error string `json:",omitempty"` // why it could not be started
}

// Chunk is how much output travels in one line.
const Chunk = 16 << 10

// Line bounds a line, so that a machine that writes nonsense costs no memory.
const Line = 1 << 20

// Writer writes frames from several goroutines.
type Writer struct {
	mu sync.Mutex // protects w
	w  io.Writer
}

func NewWriter(w io.Writer) *Writer { return &Writer{w: w} }

func (w *Writer) Write(v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	_, err = w.w.Write(append(line, '\n'))
	return err
}

// Reader reads frames.
type Reader struct{ s *bufio.Scanner }

func NewReader(r io.Reader) *Reader {
	s := bufio.NewScanner(r)
	s.Buffer(make([]byte, 0, 64<<10), Line)
	return &Reader{s}
}

// Read returns io.EOF at the end.
func (r *Reader) Read(v any) error {
	if !r.s.Scan() {
		if err := r.s.Err(); err != nil {
			return err
		}
		return io.EOF
	}
	if err := json.Unmarshal(r.s.Bytes(), v); err != nil {
		return fmt.Errorf("a line on the serial port is no frame: %w", err)
	}
	return nil
}
