package main

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"golang.org/x/term"
)

// screen is a terminal that a command has taken over: it shows one page at a time, and keys come at once and unseen.
type screen struct {
	out     io.Writer
	was     *term.State // of the terminal, to be restored; nil: it has been
	keys    chan byte
	resized chan os.Signal
}

// openScreen takes over the terminal of standard input, of which out is the output; nil: there is none.
func openScreen(out io.Writer) *screen {
	if !onTerminal(out) || !term.IsTerminal(int(os.Stdin.Fd())) {
		return nil
	}
	was, err := term.MakeRaw(int(os.Stdin.Fd()))
	if err != nil {
		return nil
	}
	s := &screen{out, was, make(chan byte), make(chan os.Signal, 1)}
	signal.Notify(s.resized, syscall.SIGWINCH)
	fmt.Fprint(out, "\x1b[?1049h\x1b[?25l") // a page of its own, without a cursor
	go func() {
		for b := make([]byte, 1); ; {
			if n, err := os.Stdin.Read(b); n == 0 || err != nil {
				return
			}
			s.keys <- b[0]
		}
	}()
	return s
}

// close gives the terminal back as it was; it may be called again.
func (s *screen) close() {
	if s == nil || s.was == nil {
		return
	}
	signal.Stop(s.resized)
	fmt.Fprint(s.out, "\x1b[?25h\x1b[?1049l")
	_ = term.Restore(int(os.Stdin.Fd()), s.was)
	s.was = nil
}

// size is 0, 0 where the terminal does not know its own.
func (s *screen) size() (width, height int) {
	width, height, err := term.GetSize(int(os.Stdout.Fd()))
	if err != nil || width <= 0 || height <= 0 {
		return 0, 0
	}
	return width, height
}

// draw shows lines in the place of those before, as many as there is room for: one more would scroll the first away.
func (s *screen) draw(text string, height int) error {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if height > 0 && len(lines) > height {
		lines = lines[:height]
	}
	_, err := io.WriteString(s.out, "\x1b[H"+strings.Join(lines, "\x1b[K\r\n")+"\x1b[K\x1b[J")
	return err
}

// onTerminal reports whether what is written is seen on one.
func onTerminal(out io.Writer) bool {
	f, is := out.(*os.File)
	return is && term.IsTerminal(int(f.Fd()))
}
