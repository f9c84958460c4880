package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
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
