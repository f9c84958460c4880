package metrics

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"weft/internal/owner"
	"weft/transport/meter/format"
)

// Load reads the files that are named, and those of folders that are named. What is
// wrong with single files is in bad; err is for a name that leads to none. A folder
// may be empty (Missing): the job may be about to begin.
func Load(names []string) (files []*File, bad []error, err error) {
	paths, _, err := owner.Find(names, format.Suffix)
	if err != nil {
		return nil, nil, err
	}
	seen := map[[16]byte]string{}
	for _, path := range paths {
		f, err := Open(path)
		if err != nil {
			bad = append(bad, err)
			continue
		}
		if first, twice := seen[f.Process]; twice {
			bad = append(bad, fmt.Errorf("%s is of the same process as %s, and left out", path, first))
			continue
		}
		for _, n := range f.Notes {
			bad = append(bad, fmt.Errorf("%s: %s", path, n))
		}
		seen[f.Process] = path
		files = append(files, f)
	}
	return files, bad, nil
}

// Missing says of folders that they hold no file yet.
func Missing(names []string) (notes []error) {
	_, empty, err := owner.Find(names, format.Suffix)
	if err != nil {
		return nil
	}
	for _, dir := range empty {
		notes = append(notes, fmt.Errorf("%s holds no file weft-*%s: is it the folder of WEFT_PROFILE_DIR, and is WEFT_PROFILE=metrics set for the job?", dir, format.Suffix))
	}
	return notes
}

// Sum is what all connections between the same ends have counted, those that are
// closed too.
type Sum struct {
	Key
	Connections int // that are open
	Lanes       int // of those
	InFlight    uint64
	Waiting     int           // sends that wait for their receive
	Waits       time.Duration // the longest of them
	Counts      Counts
}

// Sums are those of the file, in order.
func (f *File) Sums() []*Sum {
	all := map[Key]*Sum{}
	var sums []*Sum
	for i := range f.Links {
		l := &f.Links[i]
		s := all[l.Key]
		if s == nil {
			s = &Sum{Key: l.Key}
			all[l.Key] = s
			sums = append(sums, s)
		}
		s.Counts.Add(&l.Counts)
		if !l.Open {
			continue
		}
		s.Connections++
		s.Lanes += l.Lanes
		s.InFlight += l.InFlight
		if l.Waits > 0 {
			s.Waiting++
			s.Waits = max(s.Waits, l.Waits)
		}
	}
	slices.SortFunc(sums, func(a, b *Sum) int { return a.Key.compare(&b.Key) })
	return sums
}

func (k *Key) compare(o *Key) int {
	return cmp.Or(cmp.Compare(k.Peer, o.Peer), cmp.Compare(k.PeerPID, o.PeerPID), cmp.Compare(k.Device, o.Device), cmp.Compare(k.PeerDevice, o.PeerDevice),
		cmp.Compare(o.Direction(), k.Direction()), cmp.Compare(k.Network(), o.Network()))
}

// Life is how a process is.
type Life string

// What a process can be.
const (
	Runs    Life = "runs"
	Stopped Life = "stopped" // by a signal or a debugger
	Ended   Life = "ended"
	Silent  Life = "silent" // it has not shown that it runs, and is not of this machine
)

// silence is for how long a process of another machine need not show that it runs:
// its clock and this one's may differ.
const silence = 15 * time.Second

// LifeOf says how the process of a file is, of this machine by asking the kernel
// (owner.Here), else by when it last showed that it ran.
func LifeOf(f *File, here func(*owner.Owner) owner.Life, now time.Time) Life {
	l := here(&f.Owner)
	switch {
	case l.Gone:
		return Ended
	case l.Stopped:
		return Stopped
	case l.Now == 0 && now.Sub(f.Time(f.Alive)) > silence:
		return Silent
	}
	return Runs
}
