package lab

import (
	"bytes"
	"io"
	"sync"
)

// Prefixed writes whole lines, each behind a prefix; writers to one place share a lock.
type Prefixed struct {
	to     io.Writer
	prefix string
	mu     *sync.Mutex // protects to
	rest   []byte
}

func NewPrefixed(to io.Writer, prefix string, mu *sync.Mutex) *Prefixed {
	return &Prefixed{to: to, prefix: prefix, mu: mu}
}

// longest is how much of a line is kept back until its end comes.
const longest = 64 << 10

func (p *Prefixed) Write(b []byte) (int, error) {
	p.rest = append(p.rest, b...)
	end := bytes.LastIndexByte(p.rest, '\n') + 1
	if end == 0 && len(p.rest) > longest {
		end = len(p.rest)
	}
	if end == 0 {
		return len(b), nil
	}
	whole := p.rest[:end]
	p.mu.Lock()
	defer p.mu.Unlock()
	for line := range bytes.Lines(whole) {
		text := append([]byte(p.prefix), line...)
		if line[len(line)-1] != '\n' {
			text = append(text, '\n')
		}
		if _, err := p.to.Write(text); err != nil {
			return 0, err
		}
	}
	p.rest = append(p.rest[:0], p.rest[end:]...)
	return len(b), nil
}

// Flush writes a last line that has no end.
func (p *Prefixed) Flush() {
	if len(p.rest) > 0 {
		p.Write([]byte{'\n'})
	}
}
