package ranks

import (
	"bufio"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"
)

// The bootstrap between machines: rank 0 listens, the others dial. Both sides prove
// that they know the token before anything else is read:
//
//	client: weft-run 1 RANK NRANKS NONCE\n
//	server: NONCE HMAC(token, "server" NONCES RANK)\n
//	client: HMAC(token, "client" NONCES RANK)\n
//	server: ok\n        (or a line that says why not)
//
// Then frames: length u32, kind byte, body. A rank's part of a Gather is 'G' name NUL
// bytes; rank 0 answers 'A' with every part, each behind its length; 'X' ends the run
// with a cause, 'B' without.

const (
	helloLimit = 5 * time.Second
	lineLimit  = 256
	frameLimit = 1 << 20
)

func nonce() string {
	b := make([]byte, 16)
	rand.Read(b)
	return hex.EncodeToString(b)
}

func proof(token, role, client, server string, rank int) string {
	m := hmac.New(sha256.New, []byte(token))
	fmt.Fprintf(m, "weft-run %s %s %s %d", role, client, server, rank)
	return hex.EncodeToString(m.Sum(nil))
}

func readLine(r *bufio.Reader) (string, error) {
	var b strings.Builder
	for b.Len() < lineLimit {
		c, err := r.ReadByte()
		if err != nil {
			return "", err
		}
		if c == '\n' {
			return b.String(), nil
		}
		b.WriteByte(c)
	}
	return "", errors.New("the other side sends something else than weft run does")
}

// wire is a connection between two ranks.
type wire struct {
	net.Conn
	r  *bufio.Reader
	mu sync.Mutex // one frame at a time
}

func newWire(c net.Conn) *wire { return &wire{Conn: c, r: bufio.NewReader(c)} }

// greet is the dialling rank's side of the proof.
func (w *wire) greet(token string, rank, size int) error {
	w.SetDeadline(time.Now().Add(helloLimit))
	mine := nonce()
	if _, err := fmt.Fprintf(w, "weft-run 1 %d %d %s\n", rank, size, mine); err != nil {
		return err
	}
	line, err := readLine(w.r)
	if err != nil {
		return err
	}
	theirs, mac, ok := strings.Cut(line, " ")
	if !ok {
		return refusal(line)
	}
	if !hmac.Equal([]byte(mac), []byte(proof(token, "server", mine, theirs, rank))) {
		return refusal("its token is not ours: give all ranks the same --token (or WEFT_RUN_TOKEN)")
	}
	if _, err := fmt.Fprintf(w, "%s\n", proof(token, "client", mine, theirs, rank)); err != nil {
		return err
	}
	if line, err = readLine(w.r); err != nil {
		return err
	}
	if line != "ok" {
		return refusal(line)
	}
	return w.SetDeadline(time.Time{})
}

// refusal is an answer that no further try will change.
type refusal string

func (r refusal) Error() string { return "rank 0 refused: " + string(r) }

// receive is rank 0's side; it returns the rank that proved itself. judge says why a
// rank is not welcome, or "".
func (w *wire) receive(token string, judge func(rank, size int) string) (int, error) {
	w.SetDeadline(time.Now().Add(helloLimit))
	line, err := readLine(w.r)
	if err != nil {
		return 0, err
	}
	var version, rank, size int
	var theirs string
	if n, _ := fmt.Sscanf(line, "weft-run %d %d %d %32s", &version, &rank, &size, &theirs); n != 4 || len(theirs) != 32 {
		return 0, errors.New("not a rank of weft run")
	}
	mine := nonce()
	if _, err := fmt.Fprintf(w, "%s %s\n", mine, proof(token, "server", theirs, mine, rank)); err != nil {
		return 0, err
	}
	if line, err = readLine(w.r); err != nil {
		return 0, fmt.Errorf("rank %d left before it proved that it knows the token (another --token?): %w", rank, err)
	}
	if !hmac.Equal([]byte(line), []byte(proof(token, "client", theirs, mine, rank))) {
		return 0, errors.New("its token is not ours")
	}
	why := judge(rank, size)
	if version != 1 {
		why = fmt.Sprintf("it speaks version 1 of this exchange, not %d", version)
	}
	if why != "" {
		fmt.Fprintf(w, "%s\n", strings.ReplaceAll(why, "\n", " "))
		return 0, errors.New(why)
	}
	if _, err := io.WriteString(w, "ok\n"); err != nil {
		return 0, err
	}
	return rank, w.SetDeadline(time.Time{})
}

func (w *wire) writeFrame(kind byte, body []byte) error {
	b := make([]byte, 5, 5+len(body))
	binary.LittleEndian.PutUint32(b, uint32(len(body)))
	b[4] = kind
	w.mu.Lock()
	defer w.mu.Unlock()
	_, err := w.Write(append(b, body...))
	return err
}

func (w *wire) readFrame() (kind byte, body []byte, err error) {
	var head [5]byte
	if _, err := io.ReadFull(w.r, head[:]); err != nil {
		return 0, nil, err
	}
	n := binary.LittleEndian.Uint32(head[:])
	if n > frameLimit {
		return 0, nil, fmt.Errorf("a frame of %d bytes; at most %d are allowed", n, frameLimit)
	}
	body = make([]byte, n)
	_, err = io.ReadFull(w.r, body)
	return head[4], body, err
}

func packParts(parts [][]byte) []byte {
	var b []byte
	for _, p := range parts {
		b = binary.LittleEndian.AppendUint32(b, uint32(len(p)))
		b = append(b, p...)
	}
	return b
}

func unpackParts(b []byte, size int) ([][]byte, error) {
	parts := make([][]byte, size)
	for i := range parts {
		if len(b) < 4 || uint64(len(b)-4) < uint64(binary.LittleEndian.Uint32(b)) {
			return nil, errors.New("a truncated answer from rank 0")
		}
		n := binary.LittleEndian.Uint32(b)
		parts[i], b = b[4:4+n], b[4+n:]
	}
	return parts, nil
}
