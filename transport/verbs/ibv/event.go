package ibv

import "fmt"

// EventKind is enum ibv_event_type.
type EventKind uint32

const (
	EventCQErr            EventKind = 0
	EventQPFatal          EventKind = 1
	EventQPReqErr         EventKind = 2
	EventQPAccessErr      EventKind = 3
	EventCommEst          EventKind = 4
	EventDeviceFatal      EventKind = 8
	EventPortActive       EventKind = 9
	EventPortErr          EventKind = 10
	EventLIDChange        EventKind = 11
	EventPkeyChange       EventKind = 12
	EventSMChange         EventKind = 13
	EventClientReregister EventKind = 17
	EventGIDChange        EventKind = 18
	EventSpeedChange      EventKind = 20
)

var eventNames = [...]string{
	"CQ error", "QP fatal error", "QP request error", "QP access error", "communication established", "SQ drained", "path migrated",
	"path migration error", "device fatal error", "port active", "port error", "LID change", "P_Key change", "SM change", "SRQ error",
	"SRQ limit reached", "last WQE reached", "client reregistration", "GID change", "WQ fatal error", "speed change",
}

func (k EventKind) String() string {
	if int(k) < len(eventNames) {
		return eventNames[k]
	}
	return fmt.Sprintf("event %d", uint32(k))
}
