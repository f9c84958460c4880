package mapped

import (
	"encoding/binary"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"weft/transport/record/format"
)

// head writes what the first page of each file says of the process.
func head(mem []byte, drawn [format.IDLen]byte, host, build string) {
	put64 := func(at int, v uint64) { binary.LittleEndian.PutUint64(mem[at:], v) }
	put64(format.OffPID, uint64(os.Getpid()))
	mono, real := clocks()
	put64(format.OffMono, mono)
	put64(format.OffReal, real)
	copy(mem[format.OffProcess:], drawn[:])
	boot := format.Boot("/proc/sys/kernel/random/boot_id")
	copy(mem[format.OffBoot:], boot[:])
	put64(format.OffStarted, format.Started("/proc/self/stat"))
	put64(format.OffPIDs, format.PIDs("/proc/self/ns/pid"))
	copy(mem[format.OffHost:format.OffHost+format.TextLen-1], host)
	copy(mem[format.OffBuild:format.OffBuild+format.TextLen-1], build)
}

// clocks reads both at one moment: of some tries the one that took least.
func clocks() (mono, real uint64) {
	least := ^uint64(0)
	for range 8 {
		var a, r, b unix.Timespec
		if unix.ClockGettime(unix.CLOCK_MONOTONIC, &a) != nil || unix.ClockGettime(unix.CLOCK_REALTIME, &r) != nil || unix.ClockGettime(unix.CLOCK_MONOTONIC, &b) != nil {
			return 0, uint64(time.Now().UnixNano())
		}
		if took := uint64(b.Nano() - a.Nano()); took < least {
			least, mono, real = took, uint64(a.Nano())+took/2, uint64(r.Nano())
		}
	}
	return mono, real
}
