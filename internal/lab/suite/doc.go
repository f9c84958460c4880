// Package suite tests weft, and what its tests stand on, over the kernel's own RDMA stack in machines of the lab; make test-lab
// runs it.
package suite
