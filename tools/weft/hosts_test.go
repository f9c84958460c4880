package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// remoteShell is a stand-in for ssh: the host is this one.
func remoteShell(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "shell")
	if err := os.WriteFile(path, []byte("#!/bin/sh\nexec sh -c \"$2\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// onHosts runs a command of weft on hosts that a program stands for or leads to.
func onHosts(t *testing.T, ssh string, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	weft, h := programs(t)
	var out, errOut said
	status = execute(t.Context(), append(args, "--hosts", "127.0.0.1,localhost", "--ssh", ssh, "--remote-weft", weft, "--host", h, "--plugin", ours(t)), &out, &errOut)
	return status, out.text(), errOut.text()
}

func TestHosts(t *testing.T) {
	shell := remoteShell(t)
	t.Setenv("NCCL_SOCKET_IFNAME", "lo") // which the ranks are told too
	status, out, errOut := onHosts(t, shell, "run", "--sizes", "8,64K")
	if status != 0 || !strings.Contains(out, "# all data right: 1 table, 2 transfers between 2 ranks") || !strings.Contains(out, "TCP lo -> lo") {
		t.Errorf("status %d\n%s%s", status, out, errOut)
	}
	status, out, errOut = onHosts(t, shell, "perf", "bw", "--size", "64K", "--duration", "5ms", "--rounds", "1", "--csv")
	if status != 0 || strings.Count(out, "\n") != 2 {
		t.Errorf("status %d\n%s%s", status, out, errOut)
	}
	status, out, errOut = onHosts(t, shell, "run", "--sizes", "8", "--device", "it's none")
	if status != 1 || !strings.Contains(errOut, `no device "it's none"`) {
		t.Errorf("a device that is not there: status %d\n%s%s", status, out, errOut)
	}
	page := filepath.Join(t.TempDir(), "m.html") // of this process, not of a host
	status, out, errOut = onHosts(t, shell, "perf", "matrix", "--size", "64K", "--duration", "5ms", "--rounds", "1", "--html", page)
	if text, err := os.ReadFile(page); status != 0 || err != nil || !bytes.Contains(text, []byte("<svg")) || !strings.Contains(out, "# rows send") {
		t.Errorf("status %d, %v\n%s%s", status, err, out, errOut)
	}
	picky := filepath.Join(t.TempDir(), "shell")
	if err := os.WriteFile(picky, []byte("#!/bin/sh\ncase $1 in (localhost) echo 'no route to localhost' >&2; exit 255;; esac\nexec sh -c \"$2\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	status, out, errOut = onHosts(t, picky, "run", "--sizes", "8", "--timeout", "1h") // rank 0 would wait for so long
	if status != 1 || !strings.Contains(errOut, "[localhost] no route to localhost") {
		t.Errorf("a host that is not reached: status %d\n%s%s", status, out, errOut)
	}
	for _, c := range []struct {
		args   string
		status int
		err    string
	}{
		{"run --hosts a,b more", 2, "what is \"more\"?"},
		{"run --hosts a", 2, "two hosts or more"},
		{"run --hosts a,b --nranks 2", 2, "--nranks and --hosts both say"},
		{"run --hosts a,b --ssh /nowhere/ssh", 1, "/nowhere/ssh"},
		{"perf bw --hosts a,b --serve", 2, "give one"},
		{"run --leash", 2, "stdin ended before"},
	} {
		var out, errOut bytes.Buffer
		if status := execute(t.Context(), strings.Fields(c.args), &out, &errOut); status != c.status || !strings.Contains(errOut.String(), c.err) {
			t.Errorf("%s: status %d, %s", c.args, status, &errOut)
		}
	}
}

// Where the process that has started ranks on hosts is killed, they end.
func TestHostsEndWithTheirStarter(t *testing.T) {
	weft, h := programs(t)
	mark := filepath.Join(t.TempDir(), "weft") // a name by which its processes are known
	if err := os.Symlink(weft, mark); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(weft, "run", "--hosts", "127.0.0.1,localhost", "--ssh", remoteShell(t), "--remote-weft", mark, "--host", h, "--plugin", ours(t), "--sizes", "8", "--iters", "1000000000")
	var out said
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ranks := func() int {
		found, _ := exec.Command("pgrep", "-fc", "^"+mark+" ").Output() // status 1: none
		n := 0
		_, _ = fmt.Sscan(string(found), &n)
		return n
	}
	await(t, "two ranks", func() bool { return ranks() == 2 })
	if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed
	await(t, "the end of both ranks", func() bool { return ranks() == 0 })
	if t.Failed() {
		t.Log(out.text())
	}
}

// TestSSH has an sshd of its own start the ranks.
func TestSSH(t *testing.T) {
	sshd, ssh := launcher(t, "sshd", "openssh-server"), launcher(t, "ssh", "openssh-client")
	keygen := launcher(t, "ssh-keygen", "openssh-client")
	if os.Getuid() != 0 {
		t.Skip("sshd starts sessions as root only")
	}
	dir := t.TempDir()
	for _, key := range []string{"host", "user"} {
		if text, err := exec.Command(keygen, "-q", "-t", "ed25519", "-N", "", "-f", filepath.Join(dir, key)).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
	}
	if err := os.MkdirAll("/run/sshd", 0o755); err != nil { // sshd wants its empty folder
		t.Fatal(err)
	}
	port := freePort(t)
	conf := fmt.Sprintf("Port %d\nListenAddress 127.0.0.1\nListenAddress ::1\nHostKey %s/host\nAuthorizedKeysFile %[2]s/user.pub\nPidFile none\nStrictModes no\nUsePAM no\nPermitRootLogin yes\n", port, dir)
	if err := os.WriteFile(filepath.Join(dir, "conf"), []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	daemon(t, nil, sshd, "-D", "-e", "-f", filepath.Join(dir, "conf"))
	command := fmt.Sprintf("%s -F none -o BatchMode=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR -i %s/user -p %d", ssh, dir, port)
	await(t, "sshd", func() bool { return exec.Command("sh", "-c", command+" 127.0.0.1 true").Run() == nil })
	status, out, errOut := onHosts(t, command, "run", "--sizes", "8,64K")
	oneJob(t, 2, status, out+errOut)
	status, out, errOut = onHosts(t, command+" -o User=nobody-of-this-name", "run", "--sizes", "8")
	if status != 1 || !strings.Contains(errOut, "ssh did not start weft there") {
		t.Errorf("a user who is not let in: status %d\n%s%s", status, out, errOut)
	}
}
