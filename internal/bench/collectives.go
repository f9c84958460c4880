package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"weft/internal/link"
	"weft/internal/rounds"
)

// collectiveSizes are measured in one process each, with so many iterations.
var collectiveSizes = []struct {
	bytes []int64
	iters int
}{
	{[]int64{8, 1 << 10, 16 << 10, 64 << 10}, 300},
	{[]int64{256 << 10, 1 << 20, 4 << 20}, 30},
	{[]int64{16 << 20, 64 << 20}, 4},
	{[]int64{256 << 20}, 2},
}

const mostOfRun = 10 * time.Minute // of one weft run, whose ranks end by themselves when one is stuck

// collectivePaths are what all-reduces go over.
var collectivePaths = []struct {
	name  string
	delay float64 // us one way, of simulated verbs; negative: TCP
}{
	{"TCP", -1},
	{"simulated verbs", 0},
	{"simulated verbs, 20 us one way", 20},
}

// collectives compares all-reduces of the library's collNet with those of a ring over the library's net table, whose ranks
// reduce in plain C, and over TCP with those of Open MPI, in the same round, between processes that share this machine's cores.
func collectives(c *config) error {
	_, none := os.Stat(c.mpi)
	if none != nil {
		fmt.Println("without Open MPI: its mpirun, mpicc and mpi.h are not all here")
	}
	for _, path := range collectivePaths {
		env, remove, err := c.pathOf(path.delay)
		if err != nil {
			return err
		}
		err = c.collectivesOver(path.name, env, path.delay < 0 && none == nil)
		remove()
		if err != nil {
			return fmt.Errorf("%s: %w", path.name, err)
		}
	}
	return nil
}

// pathOf returns what processes need to have all of their connections over it.
func (c *config) pathOf(delay float64) (env []string, remove func(), err error) {
	if delay < 0 {
		return []string{"NCCL_IB_DISABLE=1", "NCCL_SOCKET_IFNAME=" + c.iface}, func() {}, nil
	}
	return c.simulatedAt(delay)
}

// trial is one way to have all-reduces of some sizes.
type trial struct {
	name  string
	times func(ranks int, bytes []int64, iters int) ([]timed, error)
}

func (c *config) collectivesOver(name string, env []string, mpi bool) error {
	run := func(ranks int, bytes []int64, iters int, env []string, more ...string) ([]timed, error) {
		args := []string{"--nranks", strconv.Itoa(ranks), "--sizes", listed(bytes), "--iters", strconv.Itoa(iters), "--check", "0", "--json", "--local"}
		return c.times(env, append(args, more...)...)
	}
	trials := []trial{{"ring", func(ranks int, bytes []int64, iters int) ([]timed, error) {
		return run(ranks, bytes, iters, env, "--plugin", c.library())
	}}}
	libraries := []string{c.library()}
	if c.vs != "" {
		libraries = append(libraries, c.vs)
	}
	for _, l := range libraries {
		trials = append(trials, trial{filepath.Base(l), func(ranks int, bytes []int64, iters int) ([]timed, error) {
			return run(ranks, bytes, iters, slices.Concat(env, []string{"WEFT_COLLNET=1"}), "--plugin", l, "--coll", "allreduce")
		}})
	}
	if mpi {
		trials = append(trials, trial{"Open MPI", c.openMPI})
	}
	fmt.Printf("%s\n%5s %10s %12s", name, "ranks", "bytes", trials[0].name)
	for _, t := range trials[1:] {
		fmt.Printf("  %32s", t.name)
	}
	fmt.Println("   (us, medians; in brackets: of the time of the ring in the same round; ~: disturbed)")
	for _, ranks := range []int{2, 3, 4, 8} {
		for _, part := range collectiveSizes {
			if err := c.allReduces(trials, ranks, part.bytes, part.iters); err != nil {
				return err
			}
		}
	}
	return nil
}

func listed(bytes []int64) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(bytes), " ", ","), "[]")
}

// allReduces measures some sizes between so many ranks.
func (c *config) allReduces(trials []trial, ranks int, bytes []int64, iters int) error {
	took := make([][][]float64, len(trials)) // of a trial, of a size, in each round
	disturbed := make([]int, len(trials))
	for i := range took {
		took[i] = make([][]float64, len(bytes))
	}
	for range c.rounds {
		for i, t := range trials {
			var all []timed
			noisy, err := rounds.Calmly(used, func() (err error) {
				all, err = t.times(ranks, bytes, iters)
				return err
			})
			if err != nil {
				return err
			}
			if !slices.EqualFunc(all, bytes, func(one timed, size int64) bool { return one.size == size }) {
				return fmt.Errorf("%s, %d ranks: times of other sizes than %v: %v", t.name, ranks, bytes, all)
			}
			if noisy {
				disturbed[i]++
			}
			for s, one := range all {
				took[i][s] = append(took[i][s], one.us)
			}
		}
	}
	for s, size := range bytes {
		fmt.Printf("%5d %10d %12.1f", ranks, size, rounds.Median(took[0][s]))
		for i := 1; i < len(trials); i++ {
			var parts []float64
			for r, us := range took[i][s] {
				parts = append(parts, us/took[0][s][r])
			}
			fmt.Printf("  %24.1f (%.2f)%s", rounds.Median(took[i][s]), rounds.Median(parts), rounds.Mark(disturbed[i]))
		}
		fmt.Println()
	}
	return nil
}

// timed is what one size took.
type timed struct {
	size int64
	us   float64
}

// times are those that weft run says, out of place.
func (c *config) times(env []string, args ...string) ([]timed, error) {
	ctx, cancel := context.WithTimeout(context.Background(), mostOfRun)
	defer cancel()
	cmd := exec.CommandContext(ctx, link.Dist(c.dist).Program("weft"), append([]string{"run"}, args...)...)
	cmd.Env = append(os.Environ(), env...)
	var complaint strings.Builder
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("weft run %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(complaint.String()))
	}
	var said struct {
		Tables []struct {
			Results []struct {
				Size int64   `json:"size"`
				Us   float64 `json:"time_us"`
			} `json:"results"`
			Collectives []struct {
				Size       int64 `json:"size"`
				OutOfPlace struct {
					Us float64 `json:"time_us"`
				} `json:"out_of_place"`
			} `json:"collectives"`
		} `json:"tables"`
	}
	if err := json.Unmarshal(out, &said); err != nil {
		return nil, fmt.Errorf("weft run %s: %w", strings.Join(args, " "), err)
	}
	var all []timed
	for _, t := range said.Tables {
		for _, r := range t.Results {
			all = append(all, timed{r.Size, r.Us})
		}
		for _, r := range t.Collectives {
			all = append(all, timed{r.Size, r.OutOfPlace.Us})
		}
	}
	return all, nil
}
