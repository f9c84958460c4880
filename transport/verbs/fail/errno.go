// Package fail says what the failures of libibverbs mean: errnos of its calls and
// statuses of its completions, whose trouble each is and what helps.
package fail

import (
	"fmt"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"weft/internal/report"
)

// Pinned is what the process has registered through weft, in bytes, for the message
// that explains a refused registration.
var Pinned atomic.Int64

// Call makes the error of one call of libibverbs: what was asked for, of which
// device, what the errno means there, and what to do.
func Call(call, dev string, errno syscall.Errno, what string, a ...any) *report.Error {
	name := unix.ErrnoName(errno)
	if name == "" {
		name = fmt.Sprintf("errno %d", int(errno))
	}
	detail := fmt.Sprintf(what, a...)
	if detail != "" {
		detail += ": "
	}
	cause, remedy, rules := advise(call, errno)
	return &report.Error{Op: call, Dev: dev, Cause: cause, Err: fmt.Errorf("%s%w (%s)", detail, errno, name), Remedy: remedy, Rules: rules}
}

// advise says whose trouble an errno of a call is, what helps, and which rules of weft doctor look for what it comes of.
func advise(call string, errno syscall.Errno) (cause report.Cause, remedy, rules string) {
	modify, register := call == "ibv_modify_qp", call == "ibv_reg_mr" || call == "ibv_reg_mr_iova2" || call == "ibv_reg_dmabuf_mr" || call == "mlx5dv_reg_dmabuf_mr"
	switch errno {
	case syscall.ENOMEM:
		return report.Host, memlockAdvice(), "WEFT-070 WEFT-027"
	case syscall.ETIMEDOUT:
		return report.Network, "the peer's GID does not answer from this port: check cabling, VLAN and routes between the two, or name the right ports with NCCL_IB_HCA", "WEFT-041 WEFT-110"
	case syscall.ENETUNREACH, syscall.EHOSTUNREACH:
		return report.Network, "this host has no route to the peer's GID from that port: check addresses and routes of the network device behind it", "WEFT-042"
	case syscall.ENODATA:
		return report.Host, "the GID table has no such entry any more: an address of the network device changed; set NCCL_IB_GID_INDEX=-1 if it is forced", "WEFT-040 WEFT-045"
	case syscall.EPERM, syscall.EACCES:
		return report.Host, "the process needs read and write access to /dev/infiniband/uverbs*; in a container pass the devices in and allow to lock memory", ""
	case syscall.ENODEV, syscall.EIO:
		return report.Host, "the device is gone or reset: see the kernel's log", ""
	case syscall.EMFILE, syscall.ENFILE:
		return report.Host, "raise the limit of open files (ulimit -n)", "WEFT-071 WEFT-150"
	case syscall.EOPNOTSUPP, syscall.EPROTONOSUPPORT, syscall.ENOSYS:
		return report.Unsupported, "library, kernel or device do not have it", ""
	case syscall.EBUSY:
		return report.Internal, "something made on it was not destroyed first", ""
	case syscall.EFAULT:
		if register {
			return report.Usage, "the range is not mapped, or is GPU memory and neither peer memory (nvidia_peermem, amdkfd) nor DMA-BUF serves this device", "WEFT-080"
		}
	case syscall.EBADF:
		if register {
			return report.Usage, "the descriptor is no DMA-BUF of this process", ""
		}
	case syscall.EINVAL:
		switch {
		case modify:
			return report.Host, "the device refuses the path: a forced NCCL_IB_GID_INDEX, NCCL_IB_PKEY, NCCL_IB_PKEY_VALUE or a GID that both ends do not share is the usual reason", "WEFT-040 WEFT-044"
		case register:
			return report.Usage, "the device cannot map this kind of memory, or the range lies outside the buffer", ""
		}
	case syscall.EAGAIN:
		return report.Host, "the machine, its cgroup or the device has no room for one more of these now: see the kernel's log (dmesg)", "WEFT-027"
	case syscall.ENOSPC:
		return report.Host, "the device has no more of these: fewer connections, or another device", "WEFT-027"
	}
	return report.Host, "see the kernel's log (dmesg) for what the driver says", ""
}

// memlockAdvice tells a low limit of locked memory from a device that is full.
func memlockAdvice() string {
	var limit unix.Rlimit
	have := fmt.Sprintf("weft has %d bytes registered", Pinned.Load())
	if err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &limit); err != nil {
		return have + " and the limit of locked memory cannot be read; raise it (ulimit -l unlimited)"
	}
	if limit.Cur == unix.RLIM_INFINITY {
		return have + " and locked memory is not limited (ulimit -l): the machine or the device is out of memory for this"
	}
	return fmt.Sprintf("%s and the limit of locked memory (ulimit -l) is %d bytes: set it to unlimited, in limits.conf, with LimitMEMLOCK= of a service, or --ulimit memlock=-1 of a container",
		have, limit.Cur)
}

// Unsupported reports an errno of what library, kernel or device do not have.
func Unsupported(errno syscall.Errno) bool {
	return errno == syscall.EOPNOTSUPP || errno == syscall.EPROTONOSUPPORT || errno == syscall.ENOSYS
}
