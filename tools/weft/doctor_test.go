package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"weft/internal/doctor"
)

func TestDoctor(t *testing.T) {
	root := t.TempDir()
	conf := filepath.Join(root, "etc", "nccl.conf")
	if err := os.MkdirAll(filepath.Dir(conf), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(conf, []byte("NCCL_NET_PLUGIN=none\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	bundle, stuck := filepath.Join(t.TempDir(), "b.tar.gz"), t.TempDir()
	if err := os.MkdirAll(filepath.Join(stuck, "etc"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(stuck, "etc", "nccl.conf"), 0o600); err != nil { // nobody ever writes into it
		t.Fatal(err)
	}
	for _, c := range []struct {
		args   []string
		status int
		out    []string
		err    string
	}{
		{[]string{"--root", root}, 1, []string{"NCCL 2.4.2", "asks for nothing: NCCL's own networks", "WEFT-001 breaks: NCCL_NET_PLUGIN=none", "sed -i 1d /etc/nccl.conf", "BROKEN: : jobs break by WEFT-001"}, ""},
		{[]string{"--root", root + "/none"}, 2, nil, "no such file"},
		{[]string{"--root", conf}, 2, nil, "not a folder"},
		{[]string{"more"}, 2, nil, "nothing to say about"},
		{[]string{"--what"}, 2, nil, "explains the flags"},
		{[]string{"--quiet", "--root", root}, 1, []string{"BROKEN: : jobs break by WEFT-001"}, ""},
		{[]string{"--json", "--root", root}, 1, []string{`"schema": "weft.doctor/1"`, `"code": "WEFT-001"`}, ""},
		{[]string{"--explain", "weft-70"}, 0, []string{"WEFT-070: too little memory may be locked", "ulimit -l unlimited"}, ""},
		{[]string{"--explain", "WEFT-999"}, 2, nil, "weft doctor --rules"},
		{[]string{"--rules"}, 0, []string{"WEFT-001  breaks", "WEFT-150"}, ""},
		{[]string{"--bundle", bundle, "--quiet", "--root", root}, 1, []string{"BROKEN"}, ""},
		{[]string{"--bundle", bundle, "--root", root}, 2, nil, "name a file that is not there"},
		{[]string{"--timeout", "1ns", "--root", stuck}, 2, nil, "cannot be read within 1ns: "},
		{[]string{"-h"}, 0, []string{"usage: weft doctor", "--root"}, ""},
	} {
		var out, errOut bytes.Buffer
		if status := execute(t.Context(), append([]string{"doctor"}, c.args...), &out, &errOut); status != c.status {
			t.Errorf("%q: status %d, want %d", c.args, status, c.status)
		}
		for _, want := range c.out {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%q does not say %q:\n%s", c.args, want, out.String())
			}
		}
		if !strings.Contains(errOut.String(), c.err) || c.err == "" && errOut.Len() > 0 {
			t.Errorf("%q on stderr: %q, want %q", c.args, errOut.String(), c.err)
		}
	}
}

// Hosts are asked by ssh; who does not answer is told, and makes the verdict.
func TestDoctorOfHosts(t *testing.T) {
	weft, _ := programs(t)
	shell := filepath.Join(t.TempDir(), "ssh")
	if err := os.WriteFile(shell, []byte("#!/bin/sh\ncase $1 in (gone) echo 'no route to gone' >&2; exit 255;; (odd) echo '{}'; exit 0;; esac\nexec sh -c \"$2\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	ask := func(args ...string) (status int, out, errOut string) {
		var o, e bytes.Buffer
		status = execute(t.Context(), append([]string{"doctor", "--ssh", shell, "--remote-weft", weft, "--look", "0s"}, args...), &o, &e)
		return status, o.String(), e.String()
	}
	status, out, errOut := ask("--hosts", "a,b", "--json")
	var r doctor.Report
	if err := json.Unmarshal([]byte(out), &r); err != nil || len(r.Hosts) != 2 || r.Hosts[0].Name == "" || len(r.Unasked) > 0 {
		t.Errorf("status %d, %v\n%.500s%s", status, err, out, errOut)
	}
	for _, f := range r.Across { // both are this machine: only what must be unlike is wrong
		if f.Code != "WEFT-163" && f.Code != "WEFT-164" {
			t.Errorf("%+v", f)
		}
	}
	status, out, errOut = ask("--hosts", "a,gone,odd")
	if status != 1 || !strings.Contains(out, "not asked: gone: no route to gone") || !strings.Contains(out, "not asked: odd: its weft doctor does not answer") || !strings.Contains(out, "of 3 hosts") {
		t.Errorf("status %d\n%s%s", status, out, errOut)
	}
	status, out, errOut = ask("--hosts", "gone")
	if status != 1 || !strings.Contains(out, "of 1 host 0 are well") {
		t.Errorf("no host: status %d\n%s%s", status, out, errOut)
	}
	t.Setenv("NCCL_IB_TC", "106")
	status, out, errOut = ask("--hosts", "a,b", "--json")
	if err := json.Unmarshal([]byte(out), &r); err != nil || r.Hosts[1].Settings["NCCL_IB_TC"] != "106" {
		t.Errorf("a variable of this process: status %d, %v, %v\n%s", status, err, r.Hosts, errOut)
	}
	if status, _, errOut = ask("--hosts", "a,b", "--root", "/"); status != 2 || !strings.Contains(errOut, "about one machine") {
		t.Errorf("status %d, %s", status, errOut)
	}
}
