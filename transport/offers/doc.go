// Package offers is RDMA's part of a connect: over which ports the connecting
// side offers queue pairs, which the listening side takes, and what is said where
// other ports or TCP take their place.
//
// Way is what transport sees of it. Of its methods, what a listen has (Listen) and
// what becomes of a connect that RDMA does not carry (Spared) are in fallback.go;
// the connecting side (Connect) in out.go; the listening side, which says what it
// has (Lanes) and replies to offers (Reply), in in.go.
package offers
