package ibv

// enum ibv_qp_attr_mask
const (
	MaskState     = 1 << 0
	MaskAccess    = 1 << 3
	MaskPKeyIndex = 1 << 4
	MaskPort      = 1 << 5
	MaskAV        = 1 << 7
	MaskPathMTU   = 1 << 8
	MaskTimeout   = 1 << 9
	MaskRetryCnt  = 1 << 10
	MaskRNRRetry  = 1 << 11
	MaskRQPSN     = 1 << 12
	MaskMaxRd     = 1 << 13
	MaskMinRNR    = 1 << 15
	MaskSQPSN     = 1 << 16
	MaskMaxDestRd = 1 << 17
	MaskDestQPN   = 1 << 20
)
