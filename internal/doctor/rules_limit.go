package doctor

import (
	"strings"

	"weft/internal/doctor/machine"
)

const limitTopic = "Limits of the process"

// What a process of a large job needs: NCCL raises the soft limit of files to the hard one by itself.
const (
	leastLocked  = 1 << 30  // bytes
	leastFiles   = 4096     // descriptors
	leastThreads = 4096     // of a user, or of a container
	leastAddress = 64 << 30 // bytes of address space: Go and CUDA reserve more than they use
)

// limitRules: what the process may have.
var limitRules = []Rule{
	{
		Code: "WEFT-070", Topic: limitTopic, Severity: Breaks,
		Title:       "too little memory may be locked",
		Symptom:     "`ibv_reg_mr ... Cannot allocate memory`, `ibv_create_cq failed`",
		Consequence: "memory cannot be registered with a card: RDMA connections fail",
		Remedy:      "ulimit -l unlimited; '* - memlock unlimited' in /etc/security/limits.conf, LimitMEMLOCK=infinity for slurmd and dockerd, --ulimit memlock=-1 for a container",
		check: func(x *Exam) []Finding {
			soft, hard, known := x.Limit("Max locked memory")
			if !known || soft >= leastLocked || len(x.Cards()) == 0 || x.locksFreely() {
				return nil
			}
			return seen("memlock", "/proc/self/limits: Max locked memory %d, hard %s", soft, limitText(hard)).one()
		},
	},
	{
		Code: "WEFT-071", Topic: limitTopic, Severity: Breaks,
		Title:       "too few files may be open",
		Symptom:     "`Too many open files` when a job grows",
		Consequence: "a connection over TCP takes several: a job of some hundred ranks fails",
		Remedy:      "ulimit -n 1048576; '* - nofile 1048576' in /etc/security/limits.conf, LimitNOFILE= of the service",
		check: func(x *Exam) []Finding {
			soft, hard, known := x.Limit("Max open files")
			if !known || hard >= leastFiles {
				return nil
			}
			return seen("nofile", "/proc/self/limits: Max open files %d, hard %s", soft, limitText(hard)).one()
		},
	},
	{
		Code: "WEFT-072", Topic: limitTopic, Severity: Breaks,
		Title:       "too few threads may be made",
		Symptom:     "`pthread_create failed`, `Resource temporarily unavailable`",
		Consequence: "NCCL and weft make some threads for each GPU: a host with eight ranks runs out",
		Remedy:      "ulimit -u 65536; '* - nproc 65536' in /etc/security/limits.conf, TasksMax= of the service, --pids-limit=-1 for a container",
		check: func(x *Exam) []Finding {
			if soft, _, known := x.Limit("Max processes"); known && soft < leastThreads {
				return seen("nproc", "/proc/self/limits: Max processes %d", soft).one()
			}
			for _, file := range []string{"/sys/fs/cgroup/pids.max", "/sys/fs/cgroup/pids/pids.max"} {
				if n, ok := x.Int(file); ok && n < leastThreads {
					return seen("pids", "%s: %d", file, n).one()
				}
			}
			return nil
		},
	},
	{
		Code: "WEFT-073", Topic: limitTopic, Severity: Breaks,
		Title:       "the address space is limited",
		Symptom:     "`failed to reserve`, `out of memory` with much memory free",
		Consequence: "the runtimes of CUDA and Go reserve addresses that they never use, and fail",
		Remedy:      "ulimit -v unlimited; in Slurm leave VSizeFactor=0",
		check: func(x *Exam) []Finding {
			if soft, _, known := x.Limit("Max address space"); known && soft < leastAddress {
				return seen("as", "/proc/self/limits: Max address space %d", soft).one()
			}
			return nil
		},
	},
}

func limitText(n int64) string {
	if n == machine.Unlimited {
		return "unlimited"
	}
	return number(n)
}

// capIPCLock is the bit of CAP_IPC_LOCK: who has it locks what he wants.
const capIPCLock = 14

// locksFreely reports that no limit of locked memory holds for the process.
func (x *Exam) locksFreely() bool {
	var effective uint64
	for _, c := range strings.ToLower(x.Status("CapEff")) {
		digit := strings.IndexRune("0123456789abcdef", c)
		if digit < 0 {
			return false
		}
		effective = effective<<4 | uint64(digit)
	}
	return effective>>capIPCLock&1 != 0
}
