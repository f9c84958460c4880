// Package verbs is RDMA in this process: it loads libibverbs, opens the cards that
// NCCL_IB_HCA lets through, and lists their ports as devices, in NCCL's order. Bytes
// never pass through it: the C lane posts and polls through the library's own
// function pointers.
//
// What a device is and does stands in the packages below: port (a device: what the
// host sees, GIDs, state), card (what is true of a whole card), mr (protection
// domains and memory), qp (queue pairs, connecting and proving them), event (what
// cards say of themselves, and their return), hca, gid and machine (what is chosen
// among), fail (what failures mean), ibv (the calls).
//
// A connection's life, in the order in which the transport calls:
//
//  1. Open; Provider.Devices is what NCCL may see.
//  2. port.Device.AcquirePD, qp.NewCQ, qp.New: the queue pair is in INIT.
//  3. QP.Local travels to the peer, its End comes back; QP.Connect goes to RTS.
//  4. mr.PD.Register maps memory for the card, at most once per range.
//  5. Provider.Subscribe tells when a card fails; Close destroys, in reverse.
package verbs
