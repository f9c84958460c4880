package frames

import "weft/transport/wire"

// of is a parser of wire's for any message.
func of[T any](parse func([]byte) (T, error)) func([]byte) (any, error) {
	return func(b []byte) (any, error) { return parse(b) }
}

// parsers read messages, by kind.
var parsers = map[wire.Kind]func([]byte) (any, error){
	wire.KindHello: of(wire.ParseHello), wire.KindInventory: of(wire.ParseInventory), wire.KindLanes: of(wire.ParseLanes),
	wire.KindStream: of(wire.ParseStream), wire.KindGo: of(wire.ParseGo), wire.KindReject: of(wire.ParseReject),
	wire.KindSession: of(wire.ParseSession), wire.KindOffer: of(wire.ParseOffer), wire.KindAnswer: of(wire.ParseAnswer),
	wire.KindTaken: of(wire.ParseTaken), wire.KindPad: of(pad),

	wire.KindAttach: of(wire.ParseAttach), wire.KindClosed: of(wire.ParseClosed), wire.KindRefused: of(wire.ParseRefused),
	wire.KindFailed: of(wire.ParseFailed), wire.KindBye: of(wire.ParseBye),

	wire.KindProbeOffer: of(wire.ParseProbeOffer), wire.KindProbeAnswer: of(wire.ParseProbeAnswer), wire.KindProbeState: of(wire.ParseProbeState),

	wire.KindFurther: of(wire.ParseFurther), wire.KindFurtherAnswer: of(wire.ParseFurtherAnswer), wire.KindJoin: of(wire.ParseJoin), wire.KindJoined: of(wire.ParseJoined),

	wire.KindWaitAsk: of(wire.ParseWaitAsk), wire.KindWaitReply: of(wire.ParseWaitReply),
}

// pad has nothing to say: what is in it means nothing.
func pad([]byte) (struct{}, error) { return struct{}{}, nil }
