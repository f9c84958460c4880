// Package release acts as NCCL's releases from 2.4 on, and RCCL, act towards a
// plugin: where they look for the file, which table they bind, and what they call
// in which order on which thread, through host processes.
//
// What a release looks up and its limits are data (headers/facts); what it does is
// the few behaviours of behave.go, each for a range of releases.
//
// What NCCL does to plugins, and the tests of it (rules are internal/conform's):
//
//	 1 properties come uninitialised         props.written, topology (TestRefused)
//	 2 dlclose, dlopen, init forgotten       init.reload, init.reload.bare, TestCallOrder
//	 3 init for each communicator or once    init.repeat, ctx.apart, TestCallOrder, TestNoDevice
//	 4 a split shares the context            ctx.shared, Comm.Split in TestCallOrder
//	 5 names, paths, kinds, limits           props.name .pci .device .limits, TestRefused
//	 6 service and progress threads          every rule; mr.concurrent
//	 7 connect and accept are polled         connect.pending, accept.pending, connect.handle, accept.closelisten;
//	                                         up to v4 blocking.comm, blocking.order, TestBlockingOrder
//	 8 irecv enters with *request = 1        recv.optional, Ring.Steps
//	 9 receives post a whole step            recv.larger, test.sizes, test.nosizes, test.done, flush.done, Ring.Steps
//	10 how many requests at once             requests.enough, requests.beyond, group.requests
//	11 what adapters cap                     mr.large, MaxRegister in Ring.register, TestOlderTables
//	12 profiler handles                      prof.pairs, Ring.Steps
//	13 profiler init on many threads         profiler.threads, Comm.Destroy (its finalize before the net's)
//	14 deregMr before close, errors spread   dereg.inflight, dereg.barrier, Ring.Close, dead.others
//	15 registered sends are cut             oversize.cut, oversize.again, TestRegisteredSend
//	16 ports of a card become one device    vdevice.made .data .refused, TestPortsOfACard
//	17 a tuner that fails fails its user    tuner.init, tuner.costs, Comm.tune in TestCallOrder
package release
