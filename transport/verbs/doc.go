// Package verbs is the control side of RDMA: it finds libibverbs and the
// devices behind it, chooses GIDs, makes and connects queue pairs, registers
// memory and watches for events. Bytes never pass through it: the C lane posts
// and polls through the library's own function pointers.
//
// A connection's life, in the order in which the transport calls:
//
//  1. Open loads the library, opens the devices that NCCL_IB_HCA lets through
//     and chooses a GID for each; Provider.Devices is what NCCL may see.
//  2. Device.AcquirePD, PD.NewCQ, PD.NewQP: the queue pair is in INIT.
//  3. QP.Local travels to the peer, its Peer comes back; QP.Connect goes to RTS.
//  4. PD.Register maps memory for the device, at most once per range.
//  5. Device.Subscribe tells when the device fails; Close destroys, in reverse.
//
// libibverbs is reached through one table of functions (calls), which tests
// replace: no test needs hardware.
package verbs
