package meter

/*
#include "meter.h"
*/
import "C"

import (
	"unsafe"

	"weft/transport/meter/format"
)

// What readers take for the layout is that of meter.h, or this does not compile.
var (
	_ = [1]struct{}{}[C.WEFT_METER_VERSION-format.Version]
	_ = [1]struct{}{}[C.WEFT_METER_PLACES-format.Places]
	_ = [1]struct{}{}[C.WEFT_METER_LANES-format.Lanes]
	_ = [1]struct{}{}[C.WEFT_METER_BUCKETS-format.Buckets]
	_ = [1]struct{}{}[C.WEFT_METER_TEXT-format.TextLen]
	_ = [1]struct{}{}[unsafe.Sizeof(C.struct_weft_meter_place{})-format.PlaceBytes]
	_ = [1]struct{}{}[unsafe.Sizeof(C.struct_weft_meter_file{})-format.Bytes]

	_ = [1]struct{}{}[unsafe.Offsetof(C.struct_weft_meter_file{}.version)-format.OffVersion]
	_ = [1]struct{}{}[unsafe.Offsetof(C.struct_weft_meter_file{}.places)-format.OffPlaces]
	_ = [1]struct{}{}[unsafe.Offsetof(C.struct_weft_meter_file{}.place_bytes)-format.OffPlaceBytes]
	_ = [1]struct{}{}[unsafe.Offsetof(C.struct_weft_meter_file{}.turns)-format.OffTurns]
	_ = [1]struct{}{}[unsafe.Offsetof(C.struct_weft_meter_file{}.uncounted)-format.OffUncounted]
	_ = [1]struct{}{}[unsafe.Offsetof(C.struct_weft_meter_file{}.used)-format.OffUsed]
	_ = [1]struct{}{}[unsafe.Offsetof(C.struct_weft_meter_file{}.rank)-format.OffRank]
	_ = [1]struct{}{}[unsafe.Offsetof(C.struct_weft_meter_file{}.ranks)-format.OffRanks]
	_ = [1]struct{}{}[unsafe.Offsetof(C.struct_weft_meter_file{}.stalled)-format.OffStalled]
	_ = [1]struct{}{}[unsafe.Offsetof(C.struct_weft_meter_file{}.stalls)-format.OffStalls]
	_ = [1]struct{}{}[unsafe.Offsetof(C.struct_weft_meter_file{}.place)-format.Page]

	_ = [1]struct{}{}[unsafe.Offsetof(C.struct_weft_meter_place{}.state)-format.OffState]
	_ = [1]struct{}{}[unsafe.Offsetof(C.struct_weft_meter_place{}.flags)-format.OffFlags]
	_ = [1]struct{}{}[unsafe.Offsetof(C.struct_weft_meter_place{}.number)-format.OffNumber]
	_ = [1]struct{}{}[unsafe.Offsetof(C.struct_weft_meter_place{}.opened)-format.OffOpened]
	_ = [1]struct{}{}[unsafe.Offsetof(C.struct_weft_meter_place{}.peer_pid)-format.OffPeerPID]
	_ = [1]struct{}{}[unsafe.Offsetof(C.struct_weft_meter_place{}.lanes)-format.OffLanes]
	_ = [1]struct{}{}[unsafe.Offsetof(C.struct_weft_meter_place{}.device)-format.OffDevice]
	_ = [1]struct{}{}[unsafe.Offsetof(C.struct_weft_meter_place{}.peer)-format.OffPeer]
	_ = [1]struct{}{}[unsafe.Offsetof(C.struct_weft_meter_place{}.peer_device)-format.OffPeerDevice]
	_ = [1]struct{}{}[unsafe.Offsetof(C.struct_weft_meter_place{}.since)-format.OffSince]
	_ = [1]struct{}{}[unsafe.Offsetof(C.struct_weft_meter_place{}.begun)-format.OffBegun]
	_ = [1]struct{}{}[unsafe.Offsetof(C.struct_weft_meter_place{}.messages)-format.OffMessages]
	_ = [1]struct{}{}[unsafe.Offsetof(C.struct_weft_meter_place{}.bytes)-format.OffMoved]
	_ = [1]struct{}{}[unsafe.Offsetof(C.struct_weft_meter_place{}.failed)-format.OffFailed]
	_ = [1]struct{}{}[unsafe.Offsetof(C.struct_weft_meter_place{}.time)-format.OffTime]
	_ = [1]struct{}{}[unsafe.Offsetof(C.struct_weft_meter_place{}.waits)-format.OffWaits]
	_ = [1]struct{}{}[unsafe.Offsetof(C.struct_weft_meter_place{}.waited)-format.OffWaited]
	_ = [1]struct{}{}[unsafe.Offsetof(C.struct_weft_meter_place{}.closed)-format.OffClosed]
	_ = [1]struct{}{}[unsafe.Offsetof(C.struct_weft_meter_place{}.broken)-format.OffBroken]
	_ = [1]struct{}{}[unsafe.Offsetof(C.struct_weft_meter_place{}.lane_bytes)-format.OffLaneBytes]
	_ = [1]struct{}{}[unsafe.Offsetof(C.struct_weft_meter_place{}.bucket)-format.OffBuckets]
)
