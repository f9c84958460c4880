package ibv

import "fmt"

// QPState is enum ibv_qp_state.
type QPState uint32

const (
	StateReset QPState = iota
	StateInit
	StateRTR
	StateRTS
	StateSQD
	StateSQE
	StateErr
)

func (s QPState) String() string {
	if int(s) < 7 {
		return [...]string{"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"}[s]
	}
	return fmt.Sprintf("state %d", uint32(s))
}
