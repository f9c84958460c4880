package owner

import (
	"bytes"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"weft/transport/record/format"
)

// Life is what is known of a process beside its file.
type Life struct {
	Now     uint64 // the clock of its records; 0: it is of another machine or container
	Stopped bool   // by a signal or a debugger
	Gone    bool
}

// Here says how the processes of this machine and this container are, and of others
// nothing. The time is that of this call. proc is /proc.
func Here(proc string) func(*Owner) Life {
	boot, pids := format.Boot(proc+"/sys/kernel/random/boot_id"), format.PIDs(proc+"/self/ns/pid")
	var now unix.Timespec
	err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now)
	return func(p *Owner) Life {
		if err != nil || boot != p.Boot || boot == [format.IDLen]byte{} {
			return Life{}
		}
		if p.PIDs == 0 || p.PIDs != pids { // its number may be another's here
			return Life{}
		}
		l := Life{Now: uint64(now.Nano())}
		l.Stopped, l.Gone = state(fmt.Sprintf("%s/%d/stat", proc, p.PID), p.Started)
		return l
	}
}

// state reads the letter behind the name in a process's stat; one that began at
// another time is another process.
func state(stat string, started uint64) (stopped, gone bool) {
	text, err := os.ReadFile(stat)
	if err != nil {
		return false, os.IsNotExist(err)
	}
	if now := format.Started(stat); started != 0 && now != 0 && now != started {
		return false, true
	}
	_, rest, ok := bytes.Cut(text[bytes.LastIndexByte(text, ')')+1:], []byte(" "))
	if !ok || len(rest) == 0 {
		return false, false
	}
	return rest[0] == 'T' || rest[0] == 't', rest[0] == 'Z' || rest[0] == 'X'
}
