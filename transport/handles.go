package transport

import "weft/transport/task"

// A process has one of each, whatever number of cores: handles travel through
// the host, which does not say whose they are.
var (
	comms     = task.NewIDs[*Comm](0)
	listeners = task.NewIDs[*Listener](listenerKind << 60)
)

// listenerKind keeps listen handles apart from the executor's, whose kinds are 1 to 4.
const listenerKind = 5
