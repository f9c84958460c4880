package transport

import (
	"time"

	"weft/internal/knob"
	"weft/internal/report"
	"weft/transport/device"
	"weft/transport/tcp"
	"weft/transport/verbs"
)

// Config is what a core needs from its process.
type Config struct {
	Knobs      *knob.Values
	Log        report.Logger
	Code       func(err error, table int) int32 // the only place where an error becomes a result code; table 0: its version is not known
	Devices    []*device.Device                 // what NCCL sees, in its order, from device.Found
	Interfaces []*tcp.Device                    // what rendezvous and control connections run on
	Verbs      *verbs.Provider                  // behind the devices that have Verbs; nil without
	NoVerbs    string                           // why Verbs is nil, for the peers' messages
	Stall      bool                             // the log tells of what stands still
	Build      string                           // this build, for the peer's error messages

	afterFunc func(time.Duration, func()) *time.Timer // wakes the pool; nil: time.AfterFunc
}
