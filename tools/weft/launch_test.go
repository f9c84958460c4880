package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"weft/internal/build"
	"weft/internal/doctor/fixture"
)

// LAUNCHERS_REQUIRED makes a launcher that is not installed a failure (mk/ci.mk installs them).
const launchersRequired = "LAUNCHERS_REQUIRED"

// launcher is the path of an installed program; without it the test is skipped.
func launcher(t *testing.T, name, pkg string) string {
	t.Helper()
	for _, dir := range append(filepath.SplitList(os.Getenv("PATH")), "/usr/sbin") {
		if path := filepath.Join(dir, name); exists(path) {
			return path
		}
	}
	lacks(t, name, pkg)
	return ""
}

// lacks ends a test for want of what a package has.
func lacks(t *testing.T, name, pkg string) {
	t.Helper()
	if os.Getenv(launchersRequired) != "" {
		t.Fatalf("%s is missing: install %s", name, pkg)
	}
	t.Skipf("%s is not installed (%s)", name, pkg)
}

// launched runs "weft run" as a launcher starts it, and returns what all its ranks wrote.
func launched(t *testing.T, env []string, start ...string) (status int, out string) {
	t.Helper()
	_, h := programs(t)
	return launchedAs(t, env, []string{"run", "--host", h, "--plugin", ours(t), "--sizes", "8,64K", "--iters", "2"}, start...)
}

// launchedAs runs another command of weft.
func launchedAs(t *testing.T, env, args []string, start ...string) (status int, out string) {
	t.Helper()
	weft, _ := programs(t)
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, start[0], append(append(start[1:], weft), args...)...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 20 * time.Second
	var text bytes.Buffer
	cmd.Stdout, cmd.Stderr = &text, &text
	err := cmd.Run()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), text.String()
}

// alsoLaunched runs the other commands that take their place from a launcher: four ranks measure as two pairs, and look at their one host.
func alsoLaunched(t *testing.T, env []string, start ...string) {
	t.Helper()
	_, h := programs(t)
	status, out := launchedAs(t, env, []string{"perf", "bw", "--host", h, "--plugin", ours(t), "--size", "64K", "--duration", "5ms", "--rounds", "1"}, start...)
	if status != 0 || strings.Count(out, "# all pairs, 64 KiB") != 1 || !strings.Contains(out, "2->0") || !strings.Contains(out, "3->1") {
		t.Errorf("weft perf bw: status %d\n%s", status, out)
	}
	status, out = launchedAs(t, env, []string{"doctor", "--quiet", "--look", "0s"}, start...)
	if status > 1 || strings.Count(out, " rules") != 1 {
		t.Errorf("weft doctor: status %d; want one host's verdict, once\n%s", status, out)
	}
}

// oneJob fails unless the ranks that were launched are one ring.
func oneJob(t *testing.T, nranks, status int, out string) {
	t.Helper()
	if head := fmt.Sprintf(", %d ranks, device", nranks); status != 0 || strings.Count(out, head) != 1 {
		t.Errorf("status %d; want 0, and %q once\n%s", status, head, out)
	}
}

func TestOpenMPI(t *testing.T) {
	mpirun := launcher(t, "mpirun.openmpi", "openmpi-bin")
	env := []string{"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"}
	status, out := launched(t, env, mpirun, "--oversubscribe", "-n", "4")
	oneJob(t, 4, status, out)
	alsoLaunched(t, env, mpirun, "--oversubscribe", "-n", "4")
	if status, out = launched(t, env, mpirun, "--oversubscribe", "-n", "1"); status != 0 || !strings.Contains(out, "no other process: all 3 ranks run here") {
		t.Errorf("one process: status %d\n%s", status, out)
	}
}

func TestMPICH(t *testing.T) {
	status, out := launched(t, nil, launcher(t, "mpirun.mpich", "mpich"), "-n", "4")
	oneJob(t, 4, status, out)
}

// TestSlurm starts a cluster of one node: srun makes one job, a batch script and an allocation without srun are told, tasks have what the
// prolog prints, and the health check drains the node.
func TestSlurm(t *testing.T) {
	srun, salloc := launcher(t, "srun", "slurm-wlm"), launcher(t, "salloc", "slurm-wlm")
	conf, unplug := slurm(t)
	status, out := launched(t, conf, srun, "--overcommit", "-n", "4")
	oneJob(t, 4, status, out)
	alsoLaunched(t, conf, srun, "--overcommit", "-n", "4")
	status, out = launched(t, conf, srun, "--overcommit", "--mpi=pmi2", "-n", "3")
	oneJob(t, 3, status, out)
	if status, out = launched(t, conf, salloc, "--overcommit", "-n", "3"); status != 2 || !strings.Contains(out, "say srun weft run") {
		t.Errorf("in an allocation without srun: status %d\n%s", status, out)
	}
	t.Run("batch", func(t *testing.T) {
		job, err := filepath.Abs(examples + "slurm/job.sh")
		if err != nil {
			t.Fatal(err)
		}
		log := filepath.Join(t.TempDir(), "log")
		cmd := exec.CommandContext(t.Context(), launcher(t, "sbatch", "slurm-wlm"), "--wait", "--nodes=1", "--ntasks-per-node=3", "--overcommit", "--output="+log, job, "echo", "trained")
		cmd.Env = append(append(os.Environ(), conf...), "PATH="+filepath.Dir(installed(t, ours(t)))+":"+filepath.Dir(srun)+":"+os.Getenv("PATH"))
		out, err := cmd.CombinedOutput()
		text, _ := os.ReadFile(log) // a job that was not started has none
		if err != nil || strings.Count(string(text), ", 3 ranks, device") != 1 || strings.Count(string(text), "trained\n") != 3 {
			t.Errorf("%v\n%s%s", err, out, text)
		}
	})
	t.Run("PMIx", func(t *testing.T) {
		// Debian's mpi_pmix.so opens libpmix.so in this folder by that name, which is in the package for developers alone.
		if found, _ := filepath.Glob("/usr/lib/*/pmix2/lib/libpmix.so"); len(found) == 0 { // the pattern is well formed
			lacks(t, "pmix2/lib/libpmix.so", "libpmix-dev")
		}
		status, out := launched(t, conf, srun, "--overcommit", "--mpi=pmix", "-n", "3")
		oneJob(t, 3, status, out)
	})
	t.Run("task prolog", func(t *testing.T) {
		want := "plugin weft\n"
		if ours(t) == build.Self { // there is no library: the task goes on without
			want = "plugin\n"
		}
		cmd := exec.CommandContext(t.Context(), srun, "--overcommit", "-n", "2", "sh", "-c", "echo plugin $NCCL_NET_PLUGIN")
		cmd.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "NCCL_") }), conf...)
		if out, err := cmd.CombinedOutput(); err != nil || strings.Count(string(out), want) != 2 {
			t.Errorf("%v\n%s", err, out)
		}
	})
	t.Run("health check", func(t *testing.T) { // the last: no job runs after it
		unplug()
		sinfo := launcher(t, "sinfo", "slurm-wlm")
		await(t, "a node that is drained with the doctor's verdict", func() bool {
			cmd := exec.Command(sinfo, "-h", "-o", "%t %E")
			cmd.Env = append(os.Environ(), conf...)
			text, _ := cmd.Output() // until slurmctld answers
			return strings.HasPrefix(string(text), "drain BROKEN: ") && strings.Contains(string(text), "WEFT-030")
		})
	})
}

const slurmConf = `ClusterName=weft
SlurmctldHost=%[1]s(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=%[2]s/munge.sock
CredType=cred/munge
SlurmctldPort=%[3]d
SlurmdPort=%[4]d
StateSaveLocation=%[2]s/state
SlurmdSpoolDir=%[2]s/spool
SlurmctldPidFile=%[2]s/slurmctld.pid
SlurmdPidFile=%[2]s/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SwitchType=switch/none
MpiDefault=none
NodeName=%[1]s NodeAddr=127.0.0.1 State=UNKNOWN
PartitionName=p Nodes=%[1]s Default=YES State=UP OverSubscribe=FORCE:8
TaskProlog=%[2]s/task-prolog.sh
HealthCheckProgram=%[2]s/health-check.sh
HealthCheckInterval=5
`

// slurm starts munged, slurmctld and slurmd, and returns the environment of their users. The node runs the examples' task prolog, and
// their health check as a machine whose port has a link until it is unplugged.
func slurm(t *testing.T) (env []string, unplug func()) {
	t.Helper()
	munged, ctld, d := launcher(t, "munged", "munge"), launcher(t, "slurmctld", "slurm-wlm"), launcher(t, "slurmd", "slurm-wlm")
	if os.Getuid() != 0 {
		t.Skip("slurmd starts jobs as root only")
	}
	name, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "slurm") // t.TempDir's paths are too long for munge's socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	for _, sub := range []string{"state", "spool"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	key, conf := filepath.Join(dir, "munge.key"), filepath.Join(dir, "slurm.conf")
	if err := os.WriteFile(key, bytes.Repeat([]byte("warp and weft, "), 70), 0o400); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(conf, fmt.Appendf(nil, slurmConf, name, dir, freePort(t), freePort(t)), 0o644); err != nil {
		t.Fatal(err)
	}
	env = []string{"SLURM_CONF=" + conf}
	unplug = nodeScripts(t, dir, env[0])
	daemon(t, env, munged, "--foreground", "--force", "--key-file="+key, "--socket="+dir+"/munge.sock", "--pid-file="+dir+"/munged.pid",
		"--log-file="+dir+"/munged.log", "--seed-file="+dir+"/seed")
	await(t, "munged's socket", func() bool { return exists(dir + "/munge.sock") })
	daemon(t, env, ctld, "-D", "-f", conf)
	daemon(t, env, d, "-D", "-f", conf, "-N", name)
	sinfo := launcher(t, "sinfo", "slurm-wlm")
	await(t, "an idle node", func() bool {
		cmd := exec.Command(sinfo, "-h", "-o", "%t")
		cmd.Env = append(os.Environ(), env...)
		text, _ := cmd.Output() // until slurmctld answers
		return strings.TrimSpace(string(text)) == "idle"
	})
	return env, unplug
}

// nodeScripts puts the examples' task prolog and health check into a folder, with weft on their path as an installation has it.
func nodeScripts(t *testing.T, dir, conf string) (unplug func()) {
	t.Helper()
	plugged(t, dir)
	weft, _ := programs(t)
	own, err := filepath.Abs(examples + "slurm")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Dir(launcher(t, "scontrol", "slurm-wlm")) + ":/usr/bin:/bin"
	for name, text := range map[string]string{
		"task/weft":       "exec " + weft + ` "$@" --library ` + ours(t),
		"health/weft":     "exec " + weft + ` "$@" --root $(readlink -f ` + dir + `/machine)`,
		"task-prolog.sh":  "PATH=" + dir + "/task:" + path + " exec " + own + "/task-prolog.sh",
		"health-check.sh": conf + " PATH=" + dir + "/health:" + path + " exec " + own + "/health-check.sh",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	link := filepath.Join(dir, "machine")
	if err := os.Symlink("healthy", link); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := errors.Join(os.Remove(link), os.Symlink("broken", link)); err != nil {
			t.Fatal(err)
		}
	}
}

// plugged makes a machine, healthy, whose port has a link, and one, broken, whose port has none; no job has asked for weft on either.
func plugged(t *testing.T, dir string) {
	t.Helper()
	for _, side := range []string{"healthy", "broken"} {
		root := filepath.Join(dir, side)
		if err := os.CopyFS(root, fixture.Machine(t, "../../internal/doctor/testdata/rules/WEFT-030.txtar", side)); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, "etc/nccl.conf"), []byte("NCCL_NET_PLUGIN=none\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

func await(t *testing.T, what string, so func() bool) {
	t.Helper()
	for until := time.Now().Add(time.Minute); !so(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("%s: not within a minute", what)
		}
	}
}

// daemon runs until the test ends.
func daemon(t *testing.T, env []string, args ...string) {
	t.Helper()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(os.Environ(), env...)
	var text said
	cmd.Stdout, cmd.Stderr = &text, &text
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt) // it may have ended
		select {
		case <-ended:
		case <-time.After(20 * time.Second):
			_ = cmd.Process.Kill()
			<-ended
		}
		if t.Failed() {
			t.Logf("%s:\n%s", args[0], text.text())
		}
	})
}
