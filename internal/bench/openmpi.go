package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// openMPI has Open MPI's all-reduce timed between so many ranks of this machine, over TCP alone, on the interface that the
// library uses. Where there are more ranks than cores, they give way to each other, as --oversubscribe has them do.
func (c *config) openMPI(ranks int, sizes []int64, iters int) ([]timed, error) {
	ctx, cancel := context.WithTimeout(context.Background(), mostOfRun)
	defer cancel()
	args := []string{"-np", strconv.Itoa(ranks), "--oversubscribe", "--bind-to", "none", "--mca", "pml", "ob1", "--mca", "btl", "self,tcp",
		"--mca", "btl_tcp_if_include", c.iface, c.mpi, strconv.Itoa(iters)}
	for _, size := range sizes {
		args = append(args, strconv.FormatInt(size, 10))
	}
	cmd := exec.CommandContext(ctx, "mpirun", args...)
	cmd.Env = append(os.Environ(), "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1")
	var complaint strings.Builder
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("mpirun %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(complaint.String()))
	}
	return parseMPI(string(out))
}

// parseMPI reads what the program says: a line of bytes and microseconds for each size.
func parseMPI(out string) ([]timed, error) {
	var all []timed
	for line := range strings.Lines(out) {
		f := strings.Fields(line)
		if len(f) != 2 {
			return nil, fmt.Errorf("mpirun says %q, which are no bytes and microseconds", line)
		}
		size, errSize := strconv.ParseInt(f[0], 10, 64)
		us, errUs := strconv.ParseFloat(f[1], 64)
		if errSize != nil || errUs != nil || size <= 0 || us <= 0 {
			return nil, fmt.Errorf("mpirun says %q, which are no bytes and microseconds", line)
		}
		all = append(all, timed{size, us})
	}
	return all, nil
}
