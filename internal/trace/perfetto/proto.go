package perfetto

import (
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// Numbers of fields and values in Perfetto's messages, by the message they are of
// (perfetto.dev, reference of the trace packet).
const (
	tracePacket = 1 // of the Trace

	packetTimestamp     = 8
	packetSequence      = 10
	packetTrackEvent    = 11
	packetInterned      = 12
	packetSequenceFlags = 13
	packetDescriptor    = 60

	sequenceCleared = 1 // flags
	sequenceNeeds   = 2

	descriptorUUID     = 1
	descriptorName     = 2
	descriptorProcess  = 3
	descriptorParent   = 5
	descriptorChildren = 11 // how they are ordered
	descriptorRank     = 12 // among its siblings
	descriptorOrdering = 19 // of processes

	childrenExplicit = 3
	orderingExplicit = 1

	processPID    = 1
	processName   = 6
	processLabels = 8

	eventAnnotations = 4
	eventType        = 9
	eventNameID      = 10
	eventTrack       = 11
	eventCategoryIDs = 3
	eventFlows       = 47
	eventLastFlows   = 48

	sliceBegin = 1
	sliceEnd   = 2

	annotationNameID = 1
	annotationBool   = 2
	annotationUint   = 3
	annotationInt    = 4
	annotationTextID = 17

	internedCategories  = 1
	internedNames       = 2
	internedAnnotations = 3
	internedTexts       = 29
	internedID          = 1
	internedText        = 2
)

// message is one that is being put together.
type message []byte

func (m *message) uint(field protowire.Number, v uint64) {
	*m = protowire.AppendVarint(protowire.AppendTag(*m, field, protowire.VarintType), v)
}

func (m *message) fixed(field protowire.Number, v uint64) {
	*m = protowire.AppendFixed64(protowire.AppendTag(*m, field, protowire.Fixed64Type), v)
}

func (m *message) text(field protowire.Number, v string) {
	*m = protowire.AppendString(protowire.AppendTag(*m, field, protowire.BytesType), v)
}

func (m *message) message(field protowire.Number, v message) {
	*m = protowire.AppendBytes(protowire.AppendTag(*m, field, protowire.BytesType), v)
}

// table gives texts numbers, from 1, each told once.
type table struct {
	field protowire.Number
	ids   map[string]uint64
}

// id is the text's; one that is new is added to what the packet tells.
func (t *table) id(text string, told *message) uint64 {
	if id, known := t.ids[text]; known {
		return id
	}
	id := uint64(len(t.ids)) + 1
	t.ids[text] = id
	var m message
	m.uint(internedID, id)
	m.text(internedText, text)
	told.message(t.field, m)
	return id
}

// clamp keeps a number within int32, as ranks and process numbers are.
func clamp(n int) uint64 { return uint64(min(n, math.MaxInt32)) }
