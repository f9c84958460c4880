package launch

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

func environment(text string) func(string) string {
	m := map[string]string{}
	for _, kv := range strings.Fields(text) {
		k, v, _ := strings.Cut(kv, "=")
		m[k] = v
	}
	return func(k string) string { return m[k] }
}

const step = " SLURM_JOB_ID=7 SLURM_STEP_ID=0 SLURM_PROCID=5 SLURM_STEP_NUM_TASKS=8 SLURM_STEP_NUM_NODES=2 SLURM_STEP_NODELIST=gpu[07,09]"

func TestFind(t *testing.T) {
	slurmPort, ompiPort := portOf("slurm", "7", "0"), portOf("ompi", "42", "")
	for _, c := range []struct {
		env        string
		launcher   string
		rank, size int
		addrs      []string
	}{
		{"HOME=/root", "", 0, 0, nil},
		{"RANK=3 WORLD_SIZE=4 MASTER_ADDR=10.0.0.1", "torchrun", 3, 4, []string{"10.0.0.1:29500"}},
		{"RANK=3 WORLD_SIZE=4 MASTER_ADDR=fd00::1 MASTER_PORT=1234", "torchrun", 3, 4, []string{"[fd00::1]:1234"}},
		{"RANK=3 WORLD_SIZE=16 MASTER_ADDR=a MASTER_PORT=1" + step, "torchrun", 3, 16, []string{"a:1"}},
		{"RANK=0 WORLD_SIZE=1", "RANK=0 of WORLD_SIZE=1", 0, 1, nil},
		{step, "srun", 5, 8, []string{"gpu07:" + slurmPort}},
		{"RANK=5" + step, "srun", 5, 8, []string{"gpu07:" + slurmPort}},
		{"MASTER_ADDR=10.1.1.1 MASTER_PORT=99" + step, "srun", 5, 8, []string{"10.1.1.1:99"}},
		{"SLURM_PROCID=1 SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=2 SLURM_STEP_NUM_NODES=1 SLURM_JOB_ID=7", "srun", 1, 2, []string{"127.0.0.1:" + slurmPort}},
		{"SLURM_PROCID=0 SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=1 SLURM_JOB_ID=7", "srun", 0, 1, nil},
		{"OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_SIZE=2 OMPI_MCA_ess_base_jobid=42 PMIX_RANK=1", "Open MPI's mpirun", 1, 2, []string{"127.0.0.1:" + ompiPort}},
		{"OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_SIZE=2 OMPI_MCA_ess_base_jobid=42 OMPI_MCA_orte_hnp_uri=42.0;tcp://10.0.0.1,10.1.0.1:58443;tcp6://[fd00::2]:50671",
			"Open MPI's mpirun", 1, 4, []string{"10.0.0.1:" + ompiPort, "10.1.0.1:" + ompiPort, "[fd00::2]:" + ompiPort}},
		{"PMI_RANK=1 PMI_SIZE=2 PMI_FD=6 MPI_LOCALNRANKS=2", "mpirun (PMI)", 1, 2, nil},
		{"PMI_RANK=1 PMI_SIZE=2 MPI_LOCALNRANKS=2", "mpirun (PMI)", 1, 2, []string{"127.0.0.1:" + portOf("pmi", "", "")}},
		{"PMI_RANK=1 PMI_SIZE=2 PMI_FD=6 MASTER_ADDR=h MASTER_PORT=2", "mpirun (PMI)", 1, 2, []string{"h:2"}},
	} {
		p, err := Find(environment(c.env))
		switch {
		case err != nil:
			t.Errorf("%s: %v", c.env, err)
		case p == nil:
			if c.launcher != "" {
				t.Errorf("%s: no place found", c.env)
			}
		case p.Launcher != c.launcher || p.Rank != c.rank || p.Size != c.size || !slices.Equal(p.Addrs, c.addrs):
			t.Errorf("%s: %+v", c.env, *p)
		}
	}
}

// What is not whole is never taken for no launcher at all: ranks that all run by themselves would look like a success.
func TestHalfASet(t *testing.T) {
	for _, c := range []struct{ env, want string }{
		{"RANK=1 WORLD_SIZE=2", "RANK, WORLD_SIZE is set, but not MASTER_ADDR"},
		{"RANK=1", "but not WORLD_SIZE, MASTER_ADDR"},
		{"MASTER_ADDR=h", "but not RANK, WORLD_SIZE"},
		{"RANK=1 WORLD_SIZE=1", "but not MASTER_ADDR"},
		{"OMPI_COMM_WORLD_RANK=1 PMIX_RANK=1", "but not OMPI_COMM_WORLD_SIZE"},
		{"PMI_SIZE=1", "but not PMI_RANK"},
		{"PMIX_RANK=1", "no number of ranks"},
		{"SLURM_JOB_ID=1 SLURM_NTASKS=4", "say srun weft run"},
		{"SLURM_JOB_ID=1 SLURM_PROCID=0 SLURM_NTASKS=4", "srun weft run"},
	} {
		var half *Half
		if p, err := Find(environment(c.env)); !errors.As(err, &half) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %+v, %v; want %q", c.env, p, err, c.want)
		}
	}
	for _, c := range []struct{ env, want string }{
		{"RANK=x WORLD_SIZE=2 MASTER_ADDR=h", "RANK=x is no number"},
		{"RANK=-1 WORLD_SIZE=2 MASTER_ADDR=h", "RANK=-1 is no number"},
		{"RANK=2 WORLD_SIZE=2 MASTER_ADDR=h", "below their number"},
		{"OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2", "-x MASTER_ADDR"},
		{"PMI_RANK=1 PMI_SIZE=2", "MASTER_ADDR"},
		{"SLURM_JOB_ID=7 SLURM_STEP_ID=0 SLURM_PROCID=5 SLURM_STEP_NUM_TASKS=8 SLURM_STEP_NODELIST=a]", "no list of nodes"},
	} {
		if p, err := Find(environment(c.env)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %+v, %v; want %q", c.env, p, err, c.want)
		}
	}
}

func TestFirstHost(t *testing.T) {
	for list, want := range map[string]string{
		"vm": "vm", "a,b": "a", "gpu[07-12,20],login": "gpu07", "n[3,1]": "n3", "a[1-2]b[2-3]-ib,x": "a1b2-ib",
	} {
		if host, err := firstHost(list); err != nil || host != want {
			t.Errorf("%q: %q, %v; want %q", list, host, err, want)
		}
	}
	for _, list := range []string{"", ",a", "a[", "a[]", "a[x]", "a]", "[", "a[1-2"} {
		if host, err := firstHost(list); err == nil {
			t.Errorf("%q: %q", list, host)
		}
	}
}

func FuzzFirstHost(f *testing.F) {
	f.Add("gpu[07-12,20],login")
	f.Fuzz(func(t *testing.T, list string) {
		if host, err := firstHost(list); err == nil && (host == "" || strings.ContainsAny(host, ",[]")) || err != nil && host != "" {
			t.Errorf("%q: %q, %v", list, host, err)
		}
	})
}
