package trace

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"weft/internal/owner"
	"weft/transport/record/format"
)

// Header is what a file says of itself and its process.
type Header struct {
	owner.Owner
	Version uint32
	Chunks  uint32 // as it claims
	Turns   uint64 // chunks taken so far
}

// maxChunks bounds what is read of one file, 64 GiB: WEFT_PROFILE_SIZE allows no more.
const maxChunks = 1 << 20

var order = binary.LittleEndian

// readHeader returns how many chunks there may be in the file.
func (f *File) readHeader(r io.ReaderAt, size int64) (chunks int64, err error) {
	page := make([]byte, format.Page)
	n, err := r.ReadAt(page, 0)
	if n < format.Page {
		if err == nil || errors.Is(err, io.EOF) {
			err = fmt.Errorf("it has %d bytes: a header has %d", n, format.Page)
		}
		if !bytes.HasPrefix(page[:n], []byte(format.Magic)) {
			return 0, fmt.Errorf("not a file of weft's recorder, which begins %q: %w", format.Magic, err)
		}
		return 0, err
	}
	if !bytes.HasPrefix(page, []byte(format.Magic)) {
		return 0, fmt.Errorf("not a file of weft's recorder: it begins %q and not %q", page[:len(format.Magic)], format.Magic)
	}
	h := &f.Header
	h.Version = order.Uint32(page[format.OffVersion:])
	if h.Version == 0 || h.Version > format.Version {
		return 0, fmt.Errorf("the file is of version %d, this weft reads version %d: read it with the weft that belongs to the library", h.Version, format.Version)
	}
	h.Chunks = order.Uint32(page[format.OffChunks:])
	h.Owner = owner.Read(page)
	if at := order.Uint32(page[format.OffCellsAt:]); at != format.CellsAt {
		f.note("the header has texts at byte %d; in version %d they are at %d", at, h.Version, format.CellsAt)
	}
	if at := order.Uint32(page[format.OffChunksAt:]); at != format.ChunksAt {
		f.note("the header has chunks at byte %d; in version %d they are at %d", at, h.Version, format.ChunksAt)
	}
	chunks = int64(h.Chunks)
	if has := max(0, size-format.ChunksAt) / format.ChunkBytes; has < chunks {
		f.note("cut short: the header has %d chunks, the file %d", chunks, has)
		chunks = has
	}
	if chunks > maxChunks {
		f.note("of %d chunks the first %d are read", chunks, maxChunks)
		chunks = maxChunks
	}
	return chunks, nil
}

// readLoss takes the counters, which a process may still be raising, as late as possible.
func (f *File) readLoss(r io.ReaderAt) {
	var words [4 * 8]byte
	if n, err := r.ReadAt(words[:], format.OffTurns); n < len(words) {
		f.note("counters of what was lost: %v", err)
		return
	}
	f.Header.Turns = order.Uint64(words[0:])
	f.Loss.Overwritten += order.Uint64(words[format.OffLost-format.OffTurns:])
	f.Loss.Refused = order.Uint64(words[format.OffRefused-format.OffTurns:])
	f.Loss.Unnamed = order.Uint64(words[format.OffUnnamed-format.OffTurns:])
}

func (f *File) readTexts(r io.ReaderAt, size int64) {
	cells := make([]byte, format.Cells*format.CellBytes)
	n, err := r.ReadAt(cells, format.CellsAt)
	if n < len(cells) {
		f.note("texts: %d of %d bytes can be read: %v", n, len(cells), err)
	}
	bad := 0
	for i := range n / format.CellBytes {
		c := cells[i*format.CellBytes:][:format.CellBytes]
		if order.Uint32(c[format.OffCellState:]) != format.CellComplete {
			continue
		}
		length := order.Uint32(c[format.OffCellLength:])
		if length == 0 || length > format.CellText {
			bad++
			continue
		}
		f.texts[uint32(i)+1] = owner.Plain(c[format.OffCellText:][:length])
	}
	if bad > 0 {
		f.note("%d texts have a length that they cannot have", bad)
	}
}
