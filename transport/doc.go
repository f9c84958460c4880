// Package transport is the core: it has the host's contexts, listens, connects and
// accepts, and hands out comms; bytes of messages never pass through it.
//
// A connection comes about like this:
//
//  1. Listen opens the process's rendezvous sockets, draws a listen id and a
//     token, and writes both with the addresses into the handle.
//  2. Connect races the handle's addresses. Each attempt sends frame 1 and hello; the
//     listener is silent until frame 1 proves the token. The first valid frame 2 wins.
//  3. The listening side's hello comes behind it. The pair's control connection is
//     opened if it does not stand yet.
//  4. The best way that serves makes a carrier on both sides, of queue pairs or of
//     the streams that the listening side asked for. The connecting side attaches
//     the comm on the control connection and says go, behind frame 3 unless that went
//     with an offer of queue pairs.
//  5. Both sides hand the carrier to the C executor. All of this runs in
//     goroutines; the host's calls only ask whether it is done.
//
// The tests here need a core, two, or one and a peer that lies; what one package
// does alone is tested beside it. Of the packages that join two processes, lanes,
// offers and streams, what they decide of what they are given stands beside them:
// which lanes serve again, join or are refused, over which ports, what is said of
// that. What takes both sides is here: of lanes in lanes*, further*, pool*, flush*,
// striping* and tuning*, of offers in fallback*, anyorder* and *ports*, of streams in
// connect*, congestion* and link*. carrier is interfaces alone: their tests are their
// providers'. Of verbs/card, what takes a card's events is tested in verbs/event.
package transport
