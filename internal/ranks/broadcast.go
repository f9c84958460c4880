package ranks

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"

	"weft/internal/host"
)

// FileCopy is a file's way around the ring.
type FileCopy struct {
	Bytes int64    `json:"bytes"`
	Time  float64  `json:"time_us"` // of the last rank
	Sums  []string `json:"sha256"`  // by rank
	Equal bool     `json:"equal"`
}

func (r *rank) broadcast() error {
	if r.o.Input == "" {
		return nil
	}
	r.busy("broadcast of " + r.o.Input)
	p, w, err := os.Pipe()
	if err != nil {
		return err
	}
	sum := make(chan string, 1)
	go func() { // the host writes what it has received into the pipe
		defer p.Close()
		h := sha256.New()
		_, _ = io.Copy(h, p) // a broken pipe shows as a wrong sum
		sum <- hex.EncodeToString(h.Sum(nil))
	}()
	rep, err := r.loop("ring.broadcast", host.Args{"scratch", r.base, "path", r.o.Input, "size", r.o.Bytes, "piece", piece, "group", r.group,
		"save", fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), w.Fd())})
	w.Close()
	if err != nil {
		return err
	}
	all, err := r.tell("sums", share{Us: rep.Float("us"), Sum: <-sum})
	if err != nil || r.g.Rank() != 0 {
		return err
	}
	b := FileCopy{Bytes: r.o.Bytes, Equal: true}
	for _, s := range all {
		b.Sums = append(b.Sums, s.Sum)
		b.Time = max(b.Time, s.Us)
		b.Equal = b.Equal && s.Sum == all[0].Sum
	}
	r.sink.Broadcast(b)
	return nil
}
