package suite

import (
	"os"
	"strings"
	"testing"
	"time"

	"weft/internal/lab"
	"weft/internal/lab/image"
)

// DMA-BUFs of the kernel's, which a newer kernel makes (/dev/udmabuf). Soft-RoCE
// takes none, and its devices say so; simulated verbs map them.
func TestDMABuf(t *testing.T) {
	const kernel = "6.12"
	if os.Getenv("LAB_DIST") != "" && os.Getenv("LAB_REQUIRED") == "" {
		if _, err := image.Get(t.Context(), kernel, t.Logf); err != nil {
			t.Skipf("no kernel %s, which has /dev/udmabuf: %v", kernel, err)
		}
	}
	l := boot(t, lab.Config{Kernel: kernel, Cables: 1})
	n := l.Nodes[0]
	must(t, n, time.Minute, "test", "-c", "/dev/udmabuf")
	conform := []string{program(t), "conform", "-v", "--abi", "12", "--patience", "60s", "--rule", "mr.dmabuf,props.ptr", library(t)}
	t.Run("Soft-RoCE", func(t *testing.T) {
		noLeak(t, n)
		o := <-start(t, n, 2*time.Minute, nil, conform...)
		right(t, 0, o)
		for _, e := range l.Cables[0].Ends {
			line := deviceLine(o.out.String(), e.RDMA)
			if !strings.Contains(line, "memory host: ") || !strings.Contains(line, "no DMA-BUFs: ibv_reg_dmabuf_mr returned operation not supported, NCCL stages GPU memory through the host's") {
				t.Errorf("%s says %q\n%s", e.RDMA, line, o.text())
			}
		}
	})
	t.Run("simulated verbs", func(t *testing.T) {
		env := []string{"NCCL_IBVERBS_LIB=" + simulated(t, "libibverbs.so.1"), "NCCL_IB_HCA==sim0"}
		o := <-start(t, n, 2*time.Minute, env, conform...)
		right(t, 0, o)
		if line := deviceLine(o.out.String(), "sim0"); !strings.Contains(line, "memory host|dmabuf: ") {
			t.Errorf("sim0 says %q\n%s", line, o.text())
		}
		if len(comms(o.out.String())) == 0 {
			t.Errorf("no connection was made for DMA-BUFs\n%s", o.text())
		}
		overRDMA(t, o, 2, "sim0")
	})
}

// deviceLine is what weft says of a device at init.
func deviceLine(text, device string) string {
	for line := range strings.Lines(text) {
		if strings.Contains(line, " is "+device+" port ") {
			return line
		}
	}
	return ""
}
