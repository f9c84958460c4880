package main

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

const examples = "../../docs/examples/"

// script runs a file of docs/examples with programs that stand before all others in PATH.
func script(t *testing.T, programs map[string]string, file string, args ...string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range programs {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	path, err := filepath.Abs(examples + file)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), path, args...)
	cmd.Env = append(os.Environ(), "PATH="+dir+":"+filepath.Dir(installed(t, ours(t)))+":"+os.Getenv("PATH"), "NCCL_SOCKET_IFNAME=lo", "NCCL_IB_DISABLE=1", "SLURMD_NODENAME=node7")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%s: %v\n%s", file, err, out)
	}
	return string(out)
}

// What docs/examples has is what its page names, and each script does what it is for.
func TestExampleFiles(t *testing.T) {
	page, err := os.ReadFile(examples + "README.md")
	if err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(examples, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == "README.md" {
			return err
		}
		rel, err := filepath.Rel(examples, path)
		if err == nil && !strings.Contains(string(page), "]("+rel+")") {
			t.Errorf("%s is not in the page", rel)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if out := script(t, map[string]string{"srun": `exec "$@"`}, "slurm/job.sh", "echo", "trained"); !strings.Contains(out, "# all data right") || !strings.HasSuffix(out, "trained\n") {
		t.Errorf("slurm/job.sh:\n%s", out)
	}
	prolog := script(t, nil, "slurm/task-prolog.sh")
	for line := range strings.Lines(prolog) {
		if !strings.HasPrefix(line, "export ") {
			t.Errorf("slurm/task-prolog.sh prints %q", line)
		}
	}
	if !strings.Contains(prolog, "export NCCL_NET_PLUGIN=weft\n") {
		t.Errorf("slurm/task-prolog.sh:\n%s", prolog)
	}
	if out := script(t, map[string]string{"torchrun": `echo "$NCCL_NET_PLUGIN: $*"`}, "torchrun.sh", "2", "1", "node1", "train.py", "--lr", "1"); !strings.HasSuffix(out, "weft: --nnodes 2 --node-rank 1 --nproc-per-node gpu --master-addr node1 --master-port 29500 train.py --lr 1\n") {
		t.Errorf("torchrun.sh:\n%s", out)
	}
}

// A node on which jobs would break is drained with the verdict; one that is well, or cannot be read, is not.
func TestExampleHealthCheck(t *testing.T) {
	// A port without a link is a reason; that no job has asked for weft, or for another network, is none.
	dir := t.TempDir()
	plugged(t, dir)
	well, broken := filepath.Join(dir, "healthy"), filepath.Join(dir, "broken")
	real := installed(t, ours(t))
	for _, c := range []struct{ name, weft, want string }{
		{"broken", "exec " + real + ` "$@" --root ` + broken, "update NodeName=node7 State=DRAIN Reason=BROKEN: "},
		{"well, and set for another network", "exec " + real + ` "$@" --root ` + well, ""},
		{"not to be read", "exec " + real + ` "$@" --root /nowhere`, ""},
	} {
		out := script(t, map[string]string{"weft": c.weft, "scontrol": `echo "$*"`}, "slurm/health-check.sh")
		if !strings.HasPrefix(out, c.want) || c.want == "" && out != "" {
			t.Errorf("%s: %q, want %q", c.name, out, c.want)
		}
	}
}

// In a manifest what is run of weft is where the init container puts it, and the commands are weft's. That it is a manifest of its
// kind is for tools/manifests, which takes many modules.
func TestExampleManifests(t *testing.T) {
	for _, file := range []string{"kubernetes/mpijob.yaml", "kubernetes/jobset.yaml", "ray/runtime-env.yaml"} {
		b, err := os.ReadFile(examples + file)
		if err != nil {
			t.Fatal(err)
		}
		var doc map[string]any
		if err := yaml.Unmarshal(b, &doc); err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		pods := 0
		walk(doc, func(m map[string]any) {
			if m["containers"] == nil {
				return
			}
			pods++
			var mounts []string
			for _, c := range slices.Concat(all(m["initContainers"]), all(m["containers"])) {
				for _, v := range all(c["volumeMounts"]) {
					mounts = append(mounts, v["name"].(string))
				}
				if words, ok := c["command"].([]any); ok {
					if err := ofWeft(words); err != nil {
						t.Errorf("%s: %v: %v", file, words, err)
					}
				}
			}
			if !slices.Contains(mounts, "weft") {
				t.Errorf("%s: a pod without weft: %v", file, mounts)
			}
		})
		if want := strings.HasPrefix(file, "kubernetes/"); (pods > 0) != want {
			t.Errorf("%s: %d pods", file, pods)
		}
	}
}

// walk calls f for each mapping of a document.
func walk(node any, f func(m map[string]any)) {
	switch n := node.(type) {
	case map[string]any:
		f(n)
		for _, v := range n {
			walk(v, f)
		}
	case []any:
		for _, v := range n {
			walk(v, f)
		}
	}
}

// all are the mappings of a list.
func all(list any) (of []map[string]any) {
	items, _ := list.([]any) // none
	for _, item := range items {
		if m, ok := item.(map[string]any); ok {
			of = append(of, m)
		}
	}
	return of
}

// ofWeft says what is wrong with the part of a container's command that is weft's.
func ofWeft(words []any) error {
	for i, w := range words {
		if w != "/opt/weft/bin/weft" {
			continue
		}
		var args []string
		for _, a := range words[i+1:] {
			text, ok := a.(string)
			if !ok {
				return errors.New("an argument that is no text")
			}
			args = append(args, text)
		}
		return understood(args)
	}
	return nil
}
