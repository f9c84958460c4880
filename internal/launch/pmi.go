package launch

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Meet is called once, by every rank, before the ranks join. Where the launcher's variables say where rank 0 is, that is all.
// Else rank 0 listens, returns its listener, and tells the others through the launcher.
func (p *Place) Meet(ctx context.Context, limit time.Duration) (net.Listener, []string, error) {
	if p.pmi == "" {
		return nil, p.Addrs, nil
	}
	l, addrs, err := p.meetPMI(ctx, limit)
	if err != nil {
		if l != nil {
			l.Close()
		}
		return nil, nil, fmt.Errorf("%s, on descriptor PMI_FD=%s: %w (-genv MASTER_ADDR HOST names the machine of rank 0 instead)", p.Launcher, p.pmi, err)
	}
	return l, addrs, nil
}

// The exchange of MPICH's first process management interface: lines of words key=value.
const pmiKey = "weft-run"

func (p *Place) meetPMI(ctx context.Context, limit time.Duration) (l net.Listener, addrs []string, err error) {
	fd, err := strconv.Atoi(p.pmi)
	if err != nil || fd < 0 {
		return nil, nil, errors.New("no descriptor")
	}
	unix.CloseOnExec(fd) // hosts must not keep it
	if err := unix.SetNonblock(fd, true); err != nil {
		return nil, nil, err
	}
	w := &pmi{f: os.NewFile(uintptr(fd), "PMI_FD")}
	w.r = bufio.NewReader(w.f)
	if err := w.f.SetDeadline(time.Now().Add(limit)); err != nil {
		return nil, nil, err
	}
	stop := context.AfterFunc(ctx, func() { w.f.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if p.Rank == 0 {
		if l, err = net.Listen("tcp", ":0"); err != nil {
			return nil, nil, err
		}
		addrs = reachable(l)
	}
	w.ask("cmd=init pmi_version=1 pmi_subversion=1", "response_to_init")
	space := w.ask("cmd=get_my_kvsname", "my_kvsname")["kvsname"]
	if p.Rank == 0 {
		w.ask(fmt.Sprintf("cmd=put kvsname=%s key=%s value=%s", space, pmiKey, strings.Join(addrs, ",")), "put_result")
	}
	w.ask("cmd=barrier_in", "barrier_out")
	if p.Rank != 0 {
		addrs = strings.Split(w.ask(fmt.Sprintf("cmd=get kvsname=%s key=%s", space, pmiKey), "get_result")["value"], ",")
	}
	w.ask("cmd=finalize", "finalize_ack")
	return l, addrs, w.err
}

type pmi struct {
	f   *os.File
	r   *bufio.Reader
	err error // the first; nothing is asked after it
}

// ask sends a line and reads the answer that it must have.
func (w *pmi) ask(line, want string) map[string]string {
	if w.err != nil {
		return nil
	}
	if _, w.err = w.f.WriteString(line + "\n"); w.err != nil {
		return nil
	}
	var answer string
	if answer, w.err = w.r.ReadString('\n'); w.err != nil {
		return nil
	}
	words := map[string]string{}
	for _, word := range strings.Fields(answer) {
		key, value, _ := strings.Cut(word, "=")
		words[key] = value
	}
	if rc := words["rc"]; words["cmd"] != want || rc != "" && rc != "0" {
		w.err = fmt.Errorf("%q is answered by %q", line, strings.TrimSpace(answer))
	}
	return words
}

// reachable are the addresses at which others may find the listener: loopback is last, for ranks of this machine.
func reachable(l net.Listener) (out []string) {
	port := strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	all, _ := net.InterfaceAddrs() // without them loopback remains
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok && n.IP.IsGlobalUnicast() {
			out = append(out, net.JoinHostPort(n.IP.String(), port))
		}
	}
	return append(out[:min(len(out), 16)], net.JoinHostPort("127.0.0.1", port)) // a value has 1024 bytes at most
}
