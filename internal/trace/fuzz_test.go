package trace_test

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weft/internal/trace"
	"weft/internal/trace/rectest"
	"weft/transport/record/format"
)

// small is a file without the middle, which fuzzing would spend its time on: header,
// texts and chunks, of each the beginning.
const (
	headBytes  = 256
	cellsBytes = 4 * format.CellBytes
	chunkBytes = 12 * format.RecordBytes
)

func squeeze(b []byte) []byte {
	out := append([]byte{}, b[:headBytes]...)
	out = append(out, b[format.CellsAt:][:cellsBytes]...)
	for at := format.ChunksAt; at < len(b); at += format.ChunkBytes {
		out = append(out, b[at:][:chunkBytes]...)
	}
	return out
}

func stretch(b []byte) []byte {
	if len(b) < headBytes+cellsBytes {
		return b
	}
	b = b[:min(len(b), headBytes+cellsBytes+4*chunkBytes)]
	chunks := (len(b) - headBytes - cellsBytes + chunkBytes - 1) / chunkBytes
	out := make([]byte, format.ChunksAt+chunks*format.ChunkBytes)
	copy(out, b[:headBytes])
	copy(out[format.CellsAt:], b[headBytes:][:cellsBytes])
	for i, rest := 0, b[headBytes+cellsBytes:]; i < chunks; i++ {
		rest = rest[copy(out[format.ChunksAt+i*format.ChunkBytes:], rest[:min(chunkBytes, len(rest))]):]
	}
	return out
}

// FuzzRead: what was read can be written, and is then read again as it was, without a loss.
func FuzzRead(f *testing.F) {
	whole := rich().Bytes
	f.Add(squeeze(whole))
	f.Add(squeeze(whole)[:headBytes+cellsBytes+chunkBytes+70])
	wrapped := rectest.New(2, 1, "h", boot, 0, 0)
	busy := wrapped.Thread(2, "busy")
	for i := range 3000 {
		busy.Put(format.Record{Kind: format.Start, Type: uint8(i % 20), Time: uint64(i), More: [7]uint64{uint64(i)}})
	}
	f.Add(squeeze(wrapped.Bytes))
	hostile := squeeze(whole)
	binary.LittleEndian.PutUint32(hostile[format.OffChunks:], 1<<32-1)
	f.Add(hostile)
	f.Add([]byte(format.Magic))
	f.Fuzz(func(t *testing.T, in []byte) {
		b := stretch(in)
		got, err := trace.Read(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			if got != nil {
				t.Fatal("an error, and a file")
			}
			return
		}
		chunks := (len(b) - format.ChunksAt) / format.ChunkBytes
		again := rectest.New(chunks, got.Header.PID, "", 0, got.Header.Mono, 0)
		binary.LittleEndian.PutUint32(again.Bytes[format.OffChunks:], got.Header.Chunks)
		for i, th := range got.Threads {
			for _, r := range th.Records {
				turn := r.At / format.ChunkRecords
				head := again.Bytes[format.ChunksAt+int((turn-1)%uint64(got.Header.Chunks))*format.ChunkBytes:]
				binary.LittleEndian.PutUint64(head[format.OffTurn:], turn)
				binary.LittleEndian.PutUint32(head[format.OffTID:], th.TID)
				binary.LittleEndian.PutUint32(head[format.OffName:], uint32(i)) // keeps namesakes apart
				again.PlaceIn(int((turn-1)%uint64(got.Header.Chunks)), r.At, r.Record)
			}
		}
		second, err := trace.Read(bytes.NewReader(again.Bytes), int64(len(again.Bytes)))
		if err != nil {
			t.Fatal(err)
		}
		if len(second.Threads) != len(got.Threads) {
			t.Fatalf("%d threads, then %d", len(got.Threads), len(second.Threads))
		}
		for i, th := range got.Threads {
			if d := cmp.Diff(th.Records, second.Threads[i].Records); d != "" {
				t.Fatal(d)
			}
		}
		if got.Records() > len(b)/format.RecordBytes {
			t.Fatal("more records than there is room for")
		}
	})
}
