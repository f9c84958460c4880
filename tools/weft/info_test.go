package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestInfoAndEnv(t *testing.T) {
	root, stuck := t.TempDir(), t.TempDir()
	for name, text := range map[string]string{
		"etc/nccl.conf": "NCCL_IB_TC=106\nNCCL_IB_DISABLE=1\n", "weft/addresses": "lo 127.0.0.1/8\neth0 10.0.0.1/24\n", "sys/class/infiniband/mlx5_0/ports/1/state": "4: ACTIVE\n",
		"sys/class/net/eth0/flags": "0x1003\n", "sys/class/net/eth0/carrier": "1\n", "proc/sys/kernel/hostname": "node7\n",
	} {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(stuck, "etc"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(stuck, "etc", "nccl.conf"), 0o600); err != nil { // nobody ever writes into it
		t.Fatal(err)
	}
	for _, c := range []struct {
		args, stdin string
		status      int
		out         []string
		err         string
	}{
		{"info --root " + root, "", 0, []string{"node7: weft ", "hca_id: mlx5_0", "PORT_ACTIVE", "eth0", "interface 0"}, ""},
		{"info --device eth0 --root " + root, "", 0, []string{"eth0"}, ""},
		{"info --device eth9 --root " + root, "", 2, nil, "mlx5_0, eth0"},
		{"info --json --root " + root, "", 0, []string{`"schema": "weft.info/1"`, `"name": "mlx5_0"`}, ""},
		{"info --gids --root " + root, "", 0, []string{"DEVICE"}, ""},
		{"info --gpus --root " + root, "", 0, []string{"There is no GPU."}, ""},
		{"info --gids --gpus --root " + root, "", 2, nil, "two reports"},
		{"info knobs --root " + root, "", 0, []string{"NCCL_IB_TC=106", "/etc/nccl.conf, line 1"}, ""},
		{"info knobs --all --root " + root, "", 0, []string{"NCCL_IB_TC=106", "WEFT_TIMEOUT is not set; default 10 s"}, ""},
		{"info knobs --json --root " + root, "", 0, []string{`"schema": "weft.knobs/1"`, `"state": "taken"`}, ""},
		{"info handle 7766", "", 1, []string{"cannot be read"}, ""},
		{"info handle -", "7765667401", 1, []string{"handle, 5 bytes"}, ""},
		{"info handle --json 00", "", 1, []string{`"schema": "weft.wire/1"`}, ""},
		{"info handle nothing-of-the-kind", "", 2, nil, "no file and no hex"},
		{"info handle", "", 2, nil, "one argument"},
		{"info something", "", 2, nil, "nothing to say about"},
		{"info --what", "", 2, nil, "explains the flags"},
		{"info --root " + root + "/none", "", 2, nil, "no such file"},
		{"info --timeout 1ns --root " + stuck, "", 2, nil, "cannot be read within 1ns: "},
		{"info -h", "", 0, []string{"usage: weft info", "--root"}, ""},
		{"env --root " + root, "", 1, []string{"export NCCL_NET_PLUGIN='weft'\n", "export NCCL_IB_DISABLE='0'\n", "# no NCCL will find weft"}, "--library names its file"},
		{"env --format slurm --root " + root, "", 1, []string{"export NCCL_NET_PLUGIN=weft\n"}, "--library names its file"},
		{"env --format csh --root " + root, "", 2, nil, "no format"},
		{"env more", "", 2, nil, "nothing to say about"},
		{"env --timeout 1ns --root " + stuck, "", 2, nil, "cannot be read within 1ns: "},
		{"env -h", "", 0, []string{"usage: weft env", "eval"}, ""},
	} {
		var out, errOut bytes.Buffer
		root := weft()
		root.SetIn(strings.NewReader(c.stdin))
		status := executed(t.Context(), root, strings.Fields(c.args), &out, &errOut)
		if status != c.status {
			t.Errorf("%s: status %d, want %d: %s", c.args, status, c.status, errOut.String())
		}
		for _, want := range c.out {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s does not say %q:\n%s", c.args, want, out.String())
			}
		}
		if !strings.Contains(errOut.String(), c.err) || c.err == "" && errOut.Len() > 0 {
			t.Errorf("%s on stderr: %q, want %q", c.args, errOut.String(), c.err)
		}
	}
}
