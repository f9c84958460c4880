// Package offers is RDMA's part of a connect: over which ports the connecting
// side offers queue pairs, which the listening side takes, and what is said where
// other ports or TCP take their place.
package offers
