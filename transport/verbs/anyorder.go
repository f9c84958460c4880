package verbs

import (
	"cmp"
	"fmt"

	"weft/internal/knob"
	"weft/internal/report"
	"weft/transport/verbs/ibv"
)

// findAnyOrder asks whether the card has queue pairs whose requests may arrive
// in any order (libmlx5's OOO_DP), if NCCL_IB_OOO_RQ wants them. Completions
// still come in order: whoever waits for them need not care.
func (a *adapter) findAnyOrder(device ibv.Object) {
	if a.p.knobs.Int(knob.IBOOORQ) == 0 {
		a.inOrder = "NCCL_IB_OOO_RQ=0"
		return
	}
	if !a.mlx5(device) {
		a.inOrder = "libmlx5 does not serve the card"
		return
	}
	receives, errno := a.p.lib.MLX5AnyOrder(a.context)
	switch {
	case errno != 0:
		a.inOrder = fail("mlx5dv_query_device", a.name, errno, "").Error()
	case receives == 0:
		a.inOrder = "libmlx5 says that the card, its firmware or the kernel has none such"
	}
	a.anyOrder = receives
}

const withoutAnyOrder = "unset NCCL_IB_OOO_RQ, or choose cards that have them with NCCL_IB_HCA"

// AnyOrder says why the port has no queue pairs with so many receives whose
// requests arrive in any order; nil: it has.
func (d *Device) AnyOrder(receives int) error {
	a := d.adapter
	if why := a.inOrder; why != "" {
		return report.Errorf(report.Usage, "NCCL_IB_OOO_RQ", "no queue pair for out-of-order receives: %s", why).On(d.Name).Try(withoutAnyOrder)
	}
	if a.anyOrder < receives {
		return report.Errorf(report.Usage, "NCCL_IB_OOO_RQ", "a queue pair for out-of-order receives has at most %d of them, %d are needed", a.anyOrder, receives).On(d.Name).Try(withoutAnyOrder)
	}
	return nil
}

// describeOrder is the part of a device's line about out-of-order receives,
// where the user asks for them.
func (a *adapter) describeOrder() string {
	if a.p.knobs.Int(knob.IBOOORQ) == 0 {
		return ""
	}
	return "; out-of-order receives: " + cmp.Or(a.inOrder, fmt.Sprintf("at most %d a queue pair", a.anyOrder))
}
