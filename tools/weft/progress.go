package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"weft/internal/beat"
	"weft/internal/host"
)

// progress says on stderr what is being done: in one line that a terminal keeps up to date, and wherever nothing was said for a while.
type progress struct {
	errOut   io.Writer
	terminal bool

	mu    sync.Mutex // protects what follows, and whole lines
	busy  bool       // a progress line stands on the terminal
	what  string     // is being done
	since time.Time  // since when
	beat  *beat.Beat
}

func newProgress(stderr io.Writer) *progress {
	p := &progress{errOut: stderr, what: "start", since: time.Now()}
	if f, ok := stderr.(*os.File); ok {
		st, err := f.Stat()
		p.terminal = err == nil && st.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb"
	}
	p.beat = beat.Start(func(time.Duration) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.clear()
		fmt.Fprintf(p.errOut, "# %s for %d s\n", p.what, int(time.Since(p.since).Seconds()))
	})
	return p
}

// clear takes the progress line away before another line; the caller holds mu.
func (p *progress) clear() {
	p.beat.Spoke()
	if p.busy {
		fmt.Fprint(p.errOut, "\r\x1b[K")
		p.busy = false
	}
}

// begins is that something is being done now, of which the terminal's line, if there is one, says more. The caller holds mu.
func (p *progress) begins(what, line string) {
	p.what, p.since = what, time.Now()
	if p.terminal && line != "" {
		p.clear()
		fmt.Fprintf(p.errOut, "%s ...", line)
		p.busy = true
	}
}

// Note is what the user should know.
func (p *progress) Note(format string, a ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
	fmt.Fprintf(p.errOut, "# "+format+"\n", a...)
}

// plugin prints a line of a plugin's log.
func (p *progress) plugin(rank int, l host.LogLine) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
	fmt.Fprintf(p.errOut, "[rank %d] %s %s:%d %s\n", rank, levelWord(l.Level), l.Func, l.Line, l.Text)
}

// stop takes the progress line away, and says no more.
func (p *progress) stop() {
	p.beat.Stop()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
}
