package main

// kind is one of faults.
type kind struct {
	name     string
	on       []place
	directed bool // it has one direction
	do       func(j *job, f *fault) error
	// right is whom a charge must be of.
	right func(j *job, f *fault, c charge) bool
}

// place is where a kind of fault can be, and what is meant to name it there.
type place struct {
	program, network string
	by               string
}

// What names a fault.
const (
	byLog    = "log"    // the lines of WEFT_PROFILE=stall
	byReport = "report" // weft trace report --last
)

// everywhere is all places, where one thing names the fault.
func everywhere(by string) []place {
	return []place{{"ring", "TCP", by}, {"ring", "RDMA", by}, {"NCCL", "TCP", by}, {"NCCL", "RDMA", by}}
}

var kinds = []kind{
	{name: "stopped rank", on: everywhere(byLog),
		do:    func(j *job, f *fault) error { return j.halt(j.pid(f.rank)) },
		right: func(j *job, f *fault, c charge) bool { return c.what == stands && c.pid == j.pid(f.rank) },
	},
	// A host of tools/host does not come at all, a rank of NCCL comes a while after the others.
	{name: "late rank", on: []place{{"ring", "TCP", byLog}, {"ring", "RDMA", byLog}, {"NCCL", "TCP", byReport}, {"NCCL", "RDMA", byReport}},
		do: func(j *job, f *fault) error { return j.late(f.rank) },
		right: func(j *job, f *fault, c charge) bool {
			return (c.what == isLate || c.what == isSlow) && c.pid == j.pid(f.rank)
		},
	},
	{name: "dead NIC", on: everywhere(byLog),
		do: func(j *job, f *fault) error { return j.cut(f.rank) },
		right: func(j *job, f *fault, c charge) bool {
			pid := j.pid(f.rank)
			return (c.what == path || c.what == unreachable || c.what == unplugged) && (c.pid == pid || c.to == pid)
		},
	},
	// Over TCP some packets of any size are lost, over RDMA all that are large.
	{name: "lossy path", on: everywhere(byLog), directed: true,
		do:    func(j *job, f *fault) error { return j.lose(f.rank, f.dir) },
		right: rightLink,
	},
	{name: "slow link", on: everywhere(byReport), directed: true,
		do:    func(j *job, f *fault) error { return j.narrow(f.rank, f.dir) },
		right: rightLink,
	},
	{name: "slow receiver", on: []place{{"ring", "TCP", byReport}, {"ring", "RDMA", byReport}},
		do:    func(j *job, f *fault) error { return j.lag(f.rank) },
		right: func(j *job, f *fault, c charge) bool { return c.what == isSlow && c.pid == j.pid(f.rank) },
	},
}

// rightLink is one that ends at the rank's device, in the direction of the fault.
func rightLink(j *job, f *fault, c charge) bool {
	pid := j.pid(f.rank)
	sends, receives := c.pid == pid || c.either && c.to == pid, c.to == pid || c.either && c.pid == pid
	return c.what == path && (f.dir == tx && sends || f.dir == rx && receives)
}
