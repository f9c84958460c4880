// Package launch reads from the environment which of a job's processes this one is, as torchrun, mpirun and srun say it, and
// where the job's rank 0 can be reached.
package launch

import (
	"errors"
	"fmt"
	"hash/fnv"
	"net"
	"strconv"
	"strings"
)

// Place is one process's part in a job.
type Place struct {
	Launcher string // who said so, for messages
	Rank     int
	Size     int
	Addrs    []string // host:port of rank 0, one or several; none: Meet asks the launcher

	pmi string // PMI_FD, the descriptor on which MPICH's mpirun answers
}

// Half is a set of variables of which some are missing.
type Half struct{ text string }

func (h *Half) Error() string { return h.text }

// family is one launcher's variables. All of needs are there, or it did not start this process.
type family struct {
	name  string
	needs []string // rank, size, and what else tells that the launcher was here
	start string   // how this launcher starts every rank
	meet  func(p *Place, env func(string) string) error
}

// The innermost comes first: torchrun and mpirun may themselves have been started by srun.
var families = []family{
	{"torchrun", []string{"RANK", "WORLD_SIZE", "MASTER_ADDR"}, "torchrun sets them for each rank, and MASTER_PORT", torchrun},
	{"Open MPI's mpirun", []string{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"}, "mpirun sets them for each rank", openMPI},
	{"mpirun (PMI)", []string{"PMI_RANK", "PMI_SIZE"}, "mpirun of MPICH and its relatives sets them for each rank", mpich},
	{"srun", []string{"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_ID"}, "srun sets them for each rank; in an allocation or a batch script say srun weft run", slurm},
}

// alone are variables that tell of a launcher, but neither of the rank nor of the number of ranks.
var alone = []struct{ name, why string }{
	{"PMIX_RANK", "PMIx tells no number of ranks in the environment"},
	{"SLURM_JOB_ID", "this is an allocation of Slurm, in which srun did not start this process: say srun weft run"},
}

// Find tells this process's place; nil when no launcher has started it. The error is a *Half, or names a value that cannot be.
func Find(env func(string) string) (*Place, error) {
	for _, f := range families {
		if len(missing(f, env)) > 0 {
			continue
		}
		p := &Place{Launcher: f.name}
		var err error
		if p.Rank, err = number(env, f.needs[0]); err != nil {
			return nil, err
		}
		if p.Size, err = number(env, f.needs[1]); err != nil {
			return nil, err
		}
		if p.Rank >= p.Size {
			return nil, fmt.Errorf("%s=%d, %s=%d: want a rank below their number", f.needs[0], p.Rank, f.needs[1], p.Size)
		}
		if p.Size == 1 {
			return p, nil // nobody to meet
		}
		return p, f.meet(p, env)
	}
	if env("RANK") == "0" && env("WORLD_SIZE") == "1" {
		return &Place{Launcher: "RANK=0 of WORLD_SIZE=1", Size: 1}, nil
	}
	for _, f := range families {
		if lack := missing(f, env); len(lack) < len(f.needs) {
			return nil, &Half{fmt.Sprintf("%s is set, but not %s (%s)", strings.Join(present(f, env), ", "), strings.Join(lack, ", "), f.start)}
		}
	}
	for _, a := range alone {
		if env(a.name) != "" {
			return nil, &Half{fmt.Sprintf("%s is set: %s", a.name, a.why)}
		}
	}
	return nil, nil
}

func missing(f family, env func(string) string) (out []string) {
	for _, n := range f.needs {
		if env(n) == "" {
			out = append(out, n)
		}
	}
	return out
}

func present(f family, env func(string) string) (out []string) {
	for _, n := range f.needs {
		if env(n) != "" {
			out = append(out, n)
		}
	}
	return out
}

func number(env func(string) string, name string) (int, error) {
	n, err := strconv.Atoi(env(name))
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%s=%s is no number of a rank or of ranks", name, env(name))
	}
	return n, nil
}

func torchrun(p *Place, env func(string) string) error {
	port := env("MASTER_PORT")
	if port == "" {
		port = "29500"
	}
	if env("TORCHELASTIC_USE_AGENT_STORE") == "True" { // then torchrun itself listens at MASTER_PORT
		port = portOf("torchrun", env("TORCHELASTIC_RUN_ID"), port)
	}
	p.at(port, env("MASTER_ADDR"))
	return nil
}

// openMPI's rank 0 is on mpirun's machine unless the user arranges it otherwise; mpirun says that machine's addresses.
func openMPI(p *Place, env func(string) string) error {
	port := portOf("ompi", env("OMPI_MCA_ess_base_jobid"), env("PMIX_NAMESPACE"))
	if p.named(env, port) || p.local(env("OMPI_COMM_WORLD_LOCAL_SIZE"), port) {
		return nil
	}
	_, uris, _ := strings.Cut(env("OMPI_MCA_orte_hnp_uri"), ";")
	var hosts []string
	for _, uri := range strings.Split(uris, ";") {
		_, at, found := strings.Cut(uri, "://")
		i := strings.LastIndexByte(at, ':')
		if !found || i < 0 {
			continue
		}
		for _, h := range strings.Split(at[:i], ",") { // several addresses stand before one port
			hosts = append(hosts, strings.Trim(h, "[]"))
		}
	}
	if len(hosts) == 0 {
		return errors.New("mpirun does not say where rank 0 is: add -x MASTER_ADDR=HOST, the machine of rank 0")
	}
	p.at(port, hosts...)
	return nil
}

func mpich(p *Place, env func(string) string) error {
	port := portOf("pmi", env("PMI_JOBID"), env("PMI_ID"))
	if p.named(env, port) {
		return nil
	}
	if p.pmi = env("PMI_FD"); p.pmi != "" || p.local(env("MPI_LOCALNRANKS"), port) {
		return nil
	}
	return errors.New("PMI_FD is not set, by which ranks tell each other where rank 0 is: add -genv MASTER_ADDR HOST, the machine of rank 0")
}

// slurm's rank 0 is on the step's first node.
func slurm(p *Place, env func(string) string) error {
	port := portOf("slurm", env("SLURM_JOB_ID"), env("SLURM_STEP_ID"))
	if p.named(env, port) {
		return nil
	}
	if env("SLURM_STEP_NUM_NODES") == "1" {
		p.at(port, "127.0.0.1")
		return nil
	}
	host, err := firstHost(env("SLURM_STEP_NODELIST"))
	if err != nil {
		return fmt.Errorf("SLURM_STEP_NODELIST: %w; MASTER_ADDR may name the machine of rank 0 instead", err)
	}
	p.at(port, host)
	return nil
}

// named takes MASTER_ADDR and MASTER_PORT, with which a user overrides what the launcher says.
func (p *Place) named(env func(string) string, port string) bool {
	host := env("MASTER_ADDR")
	if host == "" {
		return false
	}
	if own := env("MASTER_PORT"); own != "" {
		port = own
	}
	p.at(port, host)
	return true
}

// local takes loopback when as many ranks as there are run on this machine.
func (p *Place) local(here, port string) bool {
	if here != strconv.Itoa(p.Size) {
		return false
	}
	p.at(port, "127.0.0.1")
	return true
}

func (p *Place) at(port string, hosts ...string) {
	for _, h := range hosts {
		p.Addrs = append(p.Addrs, net.JoinHostPort(h, port))
	}
}

// portOf is a port that all ranks of a job find by themselves, and ranks of another hardly: below those that
// the kernel gives away.
func portOf(job ...string) string {
	h := fnv.New32a()
	for _, s := range job {
		fmt.Fprintf(h, "%s\n", s)
	}
	return strconv.Itoa(20000 + int(h.Sum32()%10000))
}
