package card

import (
	"fmt"
	"strings"
	"syscall"

	"weft/internal/knob"
	"weft/internal/report"
	"weft/transport/verbs/fail"
	"weft/transport/verbs/ibv"
	"weft/transport/verbs/machine"
)

// Library is libibverbs as this process uses it, with what the process brings.
type Library struct {
	*ibv.Calls
	Name  string
	Knobs *knob.Values
	Log   report.Logger
	Host  *machine.Machine
	GDR   machine.GDR // of the host

	Spare func() bool // gives up what nobody needs, and reports whether there was anything; nil: nothing

	mlx5Due bool // libmlx5 is loaded for the first card that it may serve
}

// Load tries the user's library first. ibv_fork_init comes before anything
// that pins memory, so that a forked child keeps its copy of it.
func (l *Library) Load() *report.Error {
	names := []string{"libibverbs.so.1", "libibverbs.so"}
	user := l.Knobs.Text(knob.IBVerbsLib)
	if user != "" {
		names = append([]string{user}, names...)
	}
	var whys []string
	for _, name := range names {
		lib, err := ibv.Load(name)
		if err == nil {
			l.Calls, l.Name, l.mlx5Due = lib, name, true
			break
		}
		whys = append(whys, strings.TrimPrefix(fmt.Sprintf("%s: %v", name, err), name+": "+name+": "))
		if name == user {
			l.Log.Warn("%s=%s cannot be used: %v", l.Knobs.Name(knob.IBVerbsLib), name, err)
		}
	}
	if l.Calls == nil {
		return report.Errorf(report.Unsupported, "verbs", "libibverbs cannot be loaded (%s)", strings.Join(whys, "; ")).
			Try("install libibverbs (rdma-core) and its providers in this system or container image, or name it in NCCL_IBVERBS_LIB")
	}
	if errno := l.ForkInit(); errno != 0 {
		l.Log.Info(report.Init, "%v; a process that forks while RDMA runs may lose pages to its child", fail.Call("ibv_fork_init", "", errno, "%s", l.Name))
	}
	return nil
}

// Spares reports whether a call that failed, as a card has no queue pair or no
// completion queue left, may fare better now.
func (l *Library) Spares(errno syscall.Errno) bool {
	return (errno == syscall.ENOMEM || errno == syscall.ENOSPC) && l.Spare != nil && l.Spare()
}
