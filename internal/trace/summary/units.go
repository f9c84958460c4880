package summary

import (
	"fmt"
	"strings"
	"time"
)

func nanos(ns int64) string { return time.Duration(ns).String() }

// Gigabytes writes a bandwidth in GB/s; 0: it is not known.
func Gigabytes(v float64) string {
	if v == 0 {
		return "-"
	}
	return fmt.Sprintf("%.3g", v)
}

// Size writes a number of bytes.
func Size(n uint64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
	i := 0
	for ; n >= 1024 && n%1024 == 0 && i < len(units)-1; i++ {
		n /= 1024
	}
	f := float64(n)
	for ; f >= 10240 && i < len(units)-1; i++ {
		f /= 1024
	}
	return fmt.Sprintf("%.0f %s", f, units[i])
}

// Runs writes numbers, of which those that follow one another are shortened.
func Runs(all []int32) string {
	var parts []string
	for i := 0; i < len(all); {
		j := i
		for j+1 < len(all) && all[j+1] == all[j]+1 {
			j++
		}
		text := fmt.Sprint(all[i])
		if j > i {
			text += fmt.Sprintf("-%d", all[j])
		}
		parts = append(parts, text)
		i = j + 1
	}
	return strings.Join(parts, ",")
}

// Ranked says which ranks the communicator has, and which were recorded.
func (c Communicator) Ranked() string {
	if c.ID == 0 {
		return fmt.Sprintf("rank %s; the host does not say which it is, so ranks are not compared", Runs(c.Recorded))
	}
	if c.Ranks == 0 {
		return fmt.Sprintf("ranks %s recorded", Runs(c.Recorded))
	}
	return fmt.Sprintf("%d ranks, recorded %s", c.Ranks, Runs(c.Recorded))
}
