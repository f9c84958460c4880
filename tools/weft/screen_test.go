package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weft/internal/build"
	"weft/internal/metrics/mettest"
	record "weft/transport/record/format"
)

// pty is a terminal, as who types at it has it.
type pty struct {
	t      *testing.T
	ours   *os.File
	theirs *os.File
	was    unix.Termios

	mu   sync.Mutex
	seen strings.Builder // protected by mu
}

func newPTY(t *testing.T, columns, lines uint16) *pty {
	t.Helper()
	ours, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	p := &pty{t: t, ours: ours}
	t.Cleanup(func() { ours.Close() })
	if err := unix.IoctlSetPointerInt(int(ours.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal("unlockpt: ", err)
	}
	n, err := unix.IoctlGetInt(int(ours.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal("ptsname: ", err)
	}
	p.resize(columns, lines)
	if p.theirs, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.theirs.Close() })
	p.was = p.settings()
	go func() {
		for b := make([]byte, 4096); ; {
			n, err := ours.Read(b)
			if err != nil {
				return
			}
			p.mu.Lock()
			p.seen.Write(b[:n])
			p.mu.Unlock()
		}
	}()
	return p
}

func (p *pty) resize(columns, lines uint16) {
	p.t.Helper()
	if err := unix.IoctlSetWinsize(int(p.ours.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: lines, Col: columns}); err != nil {
		p.t.Fatal("TIOCSWINSZ: ", err)
	}
}

func (p *pty) settings() unix.Termios {
	p.t.Helper()
	s, err := unix.IoctlGetTermios(int(p.theirs.Fd()), unix.TCGETS)
	if err != nil {
		p.t.Fatal("TCGETS: ", err)
	}
	return *s
}

func (p *pty) typed(keys string) {
	p.t.Helper()
	if _, err := p.ours.WriteString(keys); err != nil {
		p.t.Fatal(err)
	}
}

// over is written behind all that the command has written.
const over = "(over)"

func (p *pty) got() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seen.String()
}

// all is what the terminal has got from the command.
func (p *pty) all() string { return strings.TrimSuffix(p.got(), over) }

// page waits until a page that was drawn since the mark satisfies, and returns it and the next mark.
func (p *pty) page(mark int, what string, is func(page string) bool) (string, int) {
	p.t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		all := p.all()
		for _, page := range strings.SplitAfter(all[mark:], "\x1b[J") {
			if _, page, begun := strings.Cut(page, "\x1b[H"); begun && strings.HasSuffix(page, "\x1b[J") && is(page) {
				return page, len(all)
			}
		}
	}
	p.t.Fatalf("no page %s; the terminal has got since then:\n%q", what, p.all()[mark:])
	return "", 0
}

// session is a shell's, to which the terminal belongs, as to a user's: the end of a session is the end of its terminal's
// settings, so it is kept until these have been looked at.
type session struct {
	shell  *exec.Cmd
	status *os.File // the shell writes that of the command
	stay   *os.File // it stays until this is closed
}

// begin starts weft top in a session of its own, what it writes going to out.
func (p *pty) begin(out *os.File, env []string, args ...string) *session {
	p.t.Helper()
	weft, err := build.Command()
	if err != nil {
		p.t.Fatal(err)
	}
	status, says, err := os.Pipe()
	if err != nil {
		p.t.Fatal(err)
	}
	defer says.Close()
	waits, stay, err := os.Pipe()
	if err != nil {
		p.t.Fatal(err)
	}
	defer waits.Close()
	s := &session{exec.Command("sh", append([]string{"-c", `trap : INT TERM HUP; "$0" "$@"; echo $? >&3; read _ <&4`, weft, "top"}, args...)...), status, stay}
	s.shell.Env = append(os.Environ(), append([]string{"NO_COLOR="}, env...)...)
	s.shell.Stdin, s.shell.Stdout, s.shell.Stderr = p.theirs, out, p.theirs
	s.shell.ExtraFiles = []*os.File{says, waits}
	s.shell.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := s.shell.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		if s.shell.ProcessState == nil { // the test has failed
			_ = s.signal(syscall.SIGKILL)
			_ = s.shell.Wait()
		}
		status.Close()
		stay.Close()
	})
	return s
}

// signal sends one to all of the session; the shell does not mind.
func (s *session) signal(sig syscall.Signal) error { return syscall.Kill(-s.shell.Process.Pid, sig) }

// ended waits for the end of the command, after which the terminal is as it was.
func (p *pty) ended(s *session, status int) {
	p.t.Helper()
	if err := s.status.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		p.t.Fatal(err)
	}
	got, err := bufio.NewReader(s.status).ReadString('\n')
	if err != nil {
		p.t.Fatalf("it has not ended: %v; the terminal has got:\n%q", err, p.all())
	}
	if got != fmt.Sprintln(status) {
		p.t.Errorf("status %s, want %d", strings.TrimSpace(got), status)
	}
	if now := p.settings(); now != p.was {
		p.t.Errorf("the terminal's settings are %+v, were %+v", now, p.was)
	}
	if _, err := p.theirs.WriteString(over); err != nil {
		p.t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); !strings.HasSuffix(p.got(), over); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			p.t.Fatalf("the terminal keeps what was written; it gave %q", p.all())
		}
	}
	s.stay.Close()
	if err := s.shell.Wait(); err != nil && s.shell.ProcessState == nil {
		p.t.Fatal(err)
	}
}

// processes are files of so many, of hosts node1, node2 and so on.
func processes(t *testing.T, n int) string {
	t.Helper()
	dir := t.TempDir()
	for i := 1; i <= n; i++ {
		f := mettest.New(fmt.Sprint("node", i), uint64(i), 5000)
		f.Add(mettest.Place{Flags: record.Sends | record.OverTCP, Device: "eth0", Peer: "peer", PeerPID: 9, PeerDevice: "eth1", Lanes: 1, Bytes: 100, Times: []uint64{5000, 6000}})
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("weft-node%d-%d-00.met", i, i)), f.Bytes, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const (
	opens  = "\x1b[?1049h\x1b[?25l"
	closes = "\x1b[?25h\x1b[?1049l"
)

func has(parts ...string) func(string) bool {
	return func(page string) bool {
		return !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(page, part) })
	}
}

// Every key that the usage names does what it says there, others do nothing, and each way to leave gives the terminal back. Nothing
// but keys draws: the interval is an hour.
func TestTopKeys(t *testing.T) {
	dir := processes(t, 3)
	for _, leave := range []struct{ name, keys string }{{"q", "q"}, {"^C", "\x03"}} {
		t.Run(leave.name, func(t *testing.T) {
			p := newPTY(t, 120, 24)
			cmd := p.begin(p.theirs, nil, "--every", "1h", dir)
			_, at := p.page(0, "at once", has("3 processes, 3 silent", "by bytes", "node3:3"))
			if p.settings() == p.was {
				t.Error("keys wait for the end of a line")
			}
			for _, k := range []struct{ key, order string }{{"m", "messages"}, {"l", "p99"}, {"w", "waits"}, {"n", "name"}, {"b", "bytes"}} {
				p.typed(k.key)
				_, at = p.page(at, "by "+k.order, has("; by "+k.order+"\x1b[K"))
			}
			for _, k := range []string{"m", "x", "\x1a", "\r", "Q"} {
				p.typed(k)
				_, at = p.page(at, "after "+fmt.Sprintf("%q", k), has("; by messages\x1b[K"))
			}
			p.typed(leave.keys)
			p.ended(cmd, 0)
			if all := p.all(); !strings.HasPrefix(all, opens) || !strings.HasSuffix(all, closes) {
				t.Errorf("begins %.30q, ends %.30q", all, all[max(0, len(all)-30):])
			}
		})
	}
}

// The usage names the keys that are tested above, and no others.
func TestTopKeysAreTold(t *testing.T) {
	_, text, _ := strings.Cut(topCommand().Long, "keys sort: ")
	text, _, _ = strings.Cut(text, ".")
	if want := "b bytes, m messages, l latency, w waits, n names; q quits"; text != want {
		t.Errorf("the usage tells of %q; TestTopKeys tests %q", text, want)
	}
}

// A terminal that is made larger or smaller is filled at once, and never scrolls: no page has more lines than it, nor wider ones.
func TestTopIsResized(t *testing.T) {
	p := newPTY(t, 120, 10)
	cmd := p.begin(p.theirs, nil, "--every", "1h", processes(t, 30))
	at := 0
	for _, c := range []struct {
		columns, lines uint16
		more           string // that has no room
		rows           int
	}{{120, 10, "... and 23 more", 7}, {120, 40, "", 30}, {40, 6, "... and 27 more", 3}, {20, 2, "", 0}, {120, 33, "", 30}, {120, 32, "... and 1 more", 29}} {
		p.resize(c.columns, c.lines)
		var page string
		page, at = p.page(at, fmt.Sprintf("of %d by %d", c.columns, c.lines), func(page string) bool {
			return strings.Count(page, "node") == c.rows && strings.Contains(page, c.more) && (c.more != "" || !strings.Contains(page, " more"))
		})
		lines := strings.Split(page, "\r\n")
		if len(lines) > int(c.lines) {
			t.Errorf("%d lines of %d", len(lines), c.lines)
		}
		for _, line := range lines {
			if line = strings.NewReplacer("\x1b[K", "", "\x1b[J", "").Replace(unpainted(line)); len([]rune(line)) > int(c.columns) {
				t.Errorf("%q is wider than %d", line, c.columns)
			}
		}
	}
	p.typed("q")
	p.ended(cmd, 0)
}

// unpainted is a line without its colours.
func unpainted(line string) string {
	return regexp.MustCompile(`\x1b\[\d*m`).ReplaceAllString(line, "")
}

// A signal that ends it gives the terminal back, too.
func TestTopIsEnded(t *testing.T) {
	dir := processes(t, 1)
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		p := newPTY(t, 80, 24)
		cmd := p.begin(p.theirs, nil, "--every", "1h", dir)
		p.page(0, "at once", has("1 process"))
		if err := cmd.signal(sig); err != nil {
			t.Fatal(err)
		}
		p.ended(cmd, 0)
		if !strings.HasSuffix(p.all(), closes) {
			t.Errorf("%v: the terminal's own page is not back", sig)
		}
	}
}

// Colours are for terminals, and not with NO_COLOR; a page of its own is for who looks at one and can type.
func TestTopsOutput(t *testing.T) {
	dir, broken := processes(t, 1), t.TempDir()
	if err := os.WriteFile(filepath.Join(broken, "a.met"), []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	const bold = "\x1b[1mwho"
	for _, c := range []struct {
		name, env, args string
		keys            string
		status          int
		says, not       []string
	}{
		{"on a terminal", "X=", "--every 1h", "q", 0, []string{opens, bold}, nil},
		{"without colours", "NO_COLOR=1", "--every 1h", "q", 0, []string{opens, "\r\nwho  "}, []string{bold}},
		{"once", "X=", "--once --every 100ms", "", 0, []string{bold}, []string{opens}},
		{"once, without colours", "NO_COLOR=1", "--once --every 100ms", "", 0, []string{"who  "}, []string{opens, "\x1b"}},
		{"as JSON", "X=", "--once --json --every 100ms", "", 0, []string{`"rows":[{`}, []string{"\x1b"}},
		{"a bad file is told of when the page is gone", "X=", "--every 1h " + broken, "q", 1, []string{closes + "weft top: ", "not a file of weft's metrics"}, nil},
		{"a bad file, once", "X=", "--once --every 100ms " + broken, "", 1, []string{"not a file of weft's metrics", bold}, []string{opens}},
		{"no file at all", "X=", "--every 1h " + dir + "/none", "", 2, []string{closes + "weft top: ", "no such file"}, nil},
	} {
		p := newPTY(t, 200, 24)
		cmd := p.begin(p.theirs, []string{c.env}, append(strings.Fields(c.args), dir)...)
		if c.keys != "" {
			p.page(0, "at once", has("1 process"))
			p.typed(c.keys)
		}
		p.ended(cmd, c.status)
		all := p.all()
		for _, part := range c.says {
			if !strings.Contains(all, part) {
				t.Errorf("%s: %q is not in %q", c.name, part, all)
			}
		}
		for _, part := range c.not {
			if strings.Contains(all, part) {
				t.Errorf("%s: %q is in %q", c.name, part, all)
			}
		}
	}
}

// Into a pipe it writes lines, though the keyboard is a terminal's, which is left alone; ^C is a signal then.
func TestTopIntoAPipe(t *testing.T) {
	p := newPTY(t, 80, 24)
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	cmd := p.begin(write, nil, "--every", "100ms", processes(t, 1))
	write.Close()
	if err := read.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	said, in := "", bufio.NewReader(read)
	for range 4 { // two intervals
		line, err := in.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		said += line
	}
	if strings.Contains(said, "\x1b") || strings.Count(said, "who  ") != 1 || strings.Count(said, "1 process") != 2 {
		t.Errorf("it writes %q", said)
	}
	if p.settings() != p.was {
		t.Error("the terminal's settings are changed")
	}
	p.typed("\x03")
	p.ended(cmd, 0)
}
