package card

import (
	"cmp"
	"fmt"

	"weft/internal/knob"
	"weft/internal/report"
	"weft/transport/verbs/fail"
)

// anyOrder is what a card has of queue pairs whose requests may arrive in any order
// (libmlx5's OOO_DP). Completions still come in order: whoever waits for them need
// not care.
type anyOrder struct {
	receives int    // of one such queue pair
	none     string // why there are none
}

// findAnyOrder asks the card, if NCCL_IB_OOO_RQ wants any.
func findAnyOrder(d *device, mlx5 bool) anyOrder {
	if d.Lib.Knobs.Int(knob.IBOOORQ) == 0 {
		return anyOrder{none: "NCCL_IB_OOO_RQ=0"}
	}
	if !mlx5 {
		return anyOrder{none: "libmlx5 does not serve the card"}
	}
	receives, errno := d.Lib.MLX5AnyOrder(d.Context())
	switch {
	case errno != 0:
		return anyOrder{none: fail.Call("mlx5dv_query_device", d.Name, errno, "").Error()}
	case receives == 0:
		return anyOrder{none: "libmlx5 says that the card, its firmware or the kernel has none such"}
	}
	return anyOrder{receives: receives}
}

const withoutAnyOrder = "unset NCCL_IB_OOO_RQ, or choose cards that have them with NCCL_IB_HCA"

// AnyOrder says why a device of the card has no queue pairs with so many receives
// whose requests arrive in any order; nil: it has.
func (o *anyOrder) AnyOrder(device string, receives int) error {
	if why := o.none; why != "" {
		return report.Errorf(report.Usage, "NCCL_IB_OOO_RQ", "no QP for out-of-order receives: %s", why).On(device).Try(withoutAnyOrder)
	}
	if o.receives < receives {
		return report.Errorf(report.Usage, "NCCL_IB_OOO_RQ", "a QP takes at most %d out-of-order receives, %d are needed", o.receives, receives).On(device).Try(withoutAnyOrder)
	}
	return nil
}

// DescribeOrder is the part of a device's line about out-of-order receives.
func (o *anyOrder) DescribeOrder() string {
	return cmp.Or(o.none, fmt.Sprintf("at most %d per QP", o.receives))
}
