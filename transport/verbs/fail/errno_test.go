package fail

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	"weft/internal/report"
)

func TestErrorsNameCallDeviceErrnoAndRemedy(t *testing.T) {
	for _, c := range []struct {
		call  string
		errno syscall.Errno
		cause report.Cause
		want  string
	}{
		{"ibv_open_device", syscall.EACCES, report.Host, "ibv_open_device on mlx5_0: x: permission denied (EACCES); the process needs read and write access to /dev/infiniband"},
		{"ibv_modify_qp", syscall.ETIMEDOUT, report.Network, "(ETIMEDOUT); the peer's GID does not answer"},
		{"ibv_modify_qp", syscall.ENODATA, report.Host, "(ENODATA); the GID table has no such entry"},
		{"ibv_modify_qp", syscall.EINVAL, report.Host, "forced NCCL_IB_GID_INDEX"},
		{"ibv_reg_mr", syscall.EFAULT, report.Usage, "nvidia_peermem"},
		{"ibv_reg_mr", syscall.ENOMEM, report.Host, "weft has "},
		{"ibv_reg_dmabuf_mr", syscall.EBADF, report.Usage, "no DMA-BUF"},
		{"ibv_create_qp", syscall.ENOSPC, report.Host, "no more of these"},
		{"ibv_create_qp", syscall.EOPNOTSUPP, report.Unsupported, "do not have it"},
		{"ibv_query_port", syscall.Errno(4095), report.Host, "(errno 4095)"},
	} {
		err := Call(c.call, "mlx5_0", c.errno, "x")
		if err.Cause != c.cause || !strings.Contains(err.Error(), c.want) || !errors.Is(err, c.errno) {
			t.Errorf("%s %v: %v, %v", c.call, c.errno, err.Cause, err)
		}
	}
}
