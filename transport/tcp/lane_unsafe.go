package tcp

/*
#cgo CFLAGS: -std=gnu11 -O2 -Wall -fvisibility=hidden -I${SRCDIR}/../../headers
#include "stream.h"
*/
import "C"

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"sync"
	"unsafe"

	"weft/transport/fastpath"
)

// coverKey gives the pump the number that no peer knows.
var coverKey = sync.OnceFunc(func() {
	var b [8]byte
	rand.Read(b[:])
	C.wf_cover_key = C.uint64_t(binary.LittleEndian.Uint64(b[:]) % (1<<61 - 1))
})

// Stash is how many bytes a receiving comm keeps of messages that came ahead of their receives.
const Stash = C.WF_STASH

// streakFirst is after how many small sends in a row a comm is looked at, to begin with.
const streakFirst = C.WF_STREAK

// AttachStreams makes fds the streams of a lane of c, before c is opened; stash is what the peer keeps of messages
// ahead, if c sends. Lanes are attached in order, from 0; stream 0 of
// lane 0 also carries the CTS. The fds are non-blocking and close-on-exec; they belong to the lane until DetachStreams.
func AttachStreams(c *fastpath.Comm, lane int, fds []int, stash uint32) error {
	slab := (*C.struct_wf_comm)(c.Slab())
	attached := 0
	for i := range int(slab.nlanes) {
		attached += int(slab.lanes[i].streams)
	}
	switch {
	case lane != int(slab.nlanes) || lane >= C.WF_LANES:
		return fmt.Errorf("tcp: attach lane %d to %v: its next lane is %d of at most %d", lane, c, slab.nlanes, C.WF_LANES)
	case len(fds) == 0 || attached+len(fds) > C.WF_STREAMS:
		return fmt.Errorf("tcp: attach %d streams to %v, which has %d: a comm has 1 to %d", len(fds), c, attached, C.WF_STREAMS)
	}
	raw := make([]C.int, len(fds))
	for i, fd := range fds {
		if err := fastpath.TrackFD(fd); err != nil {
			return err
		}
		raw[i] = C.int(fd)
	}
	coverKey()
	C.wf_stream_attach(slab, C.uint32_t(lane), &raw[0], C.uint32_t(len(raw)), C.uint32_t(stash))
	return nil
}

// writeCoalesced writes what small sends have left behind. It reports whether all has left, or can no more.
func writeCoalesced(c *fastpath.Comm) bool {
	if !c.TryHold() {
		return false
	}
	defer c.Release()
	return C.wf_coalesced_write((*C.struct_wf_comm)(c.Slab())) != 1
}

// Cut resets the streams of a comm that is closed or has failed, of which the kernel still reads the host's memory (AllowZeroCopy).
func Cut(c *fastpath.Comm) { C.wf_stream_cut((*C.struct_wf_comm)(c.Slab())) }

// DetachStreams takes the streams of a closed comm back, in the order in which they were attached. rest is what small sends
// have left behind for the first one.
func DetachStreams(c *fastpath.Comm) (streams []int, rest []byte) {
	var raw [C.WF_STREAMS]C.int
	slab := (*C.struct_wf_comm)(c.Slab())
	if n := slab.coalesced_end - slab.coalesced_at; n > 0 {
		rest = C.GoBytes(unsafe.Add(unsafe.Pointer(&slab.stash), slab.coalesced_at), C.int(n))
	}
	n := int(C.wf_stream_detach(slab, &raw[0], C.WF_STREAMS))
	fds := make([]int, n)
	for i := range fds {
		fds[i] = int(raw[i])
	}
	return fds, rest
}
