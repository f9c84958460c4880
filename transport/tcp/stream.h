/* stream.h: a lane of 1..64 TCP streams, and the frames that travel on them.
 *
 * Every frame begins with 32 bytes, little endian:
 *
 *    0  kind   1   2 CTS (receiver to sender, on stream 0), 3 DATA (sender to receiver, on any stream), 4 AHEAD
 *    1  entry  1   index in the group, 0..7; AHEAD: 255
 *    2  lane   1   lane of the comm
 *    3  hop    1   0
 *    4  epoch  2   the lane's, 0 until a lane is replaced
 *    6  flags  2   CTS: receives in the group, 1..8; DATA, AHEAD: 0
 *    8  len    4   payload bytes that follow; CTS: 0
 *   12  size   4   DATA: bytes of the whole message; CTS: bytes that the receive takes
 *   16  offset 8   DATA: where in the message the payload belongs; CTS: the tag; AHEAD: the tag 4, place in the stash 4
 *   24  seq    8   number of the group, from 1; AHEAD: of the first group that the sender knows nothing of
 *
 * A frame names (seq, entry, offset), never a key or an address: there is nothing to forge. A group's CTS are n
 * frames in a row, groups follow in order of seq. A message is one DATA frame, or frames of the lane's chunk on
 * whichever stream takes them; a message of 0 bytes is one frame of 0. Receivers accept any cut into frames that do
 * not overlap.
 *
 * AHEAD is a message of at most 256 KiB that leaves before its CTS, on stream 0 of lane 0, where there are several of
 * at most 16 KiB: larger ones are for all streams. It belongs to the first receive of its tag, from group seq on,
 * that no message before it has. The receiver has a stash for those whose receive is not posted, and says how large
 * it is when the connection is made. Their sender chooses each one's place, and uses a place again, and has more
 * than 256 under way, only when it has the CTS of their receives. A receiver may keep CTS back while messages come
 * ahead; it sends them when a quarter of the stash has come, 32 groups wait, or nothing comes any more. */
#ifndef WEFT_STREAM_H
#define WEFT_STREAM_H

#include "../fastpath/fastpath.h"

#define WF_FRAME_CTS 2
#define WF_FRAME_DATA 3
#define WF_FRAME_AHEAD 4
#define WF_STREAK 64u /* small sends in a row, one at a time, after which the core looks at them */
#define WF_ZEROS 32 /* writes of a stream that the kernel may still read */

struct wf_frame {
	uint8_t kind, entry, lane, hop;
	uint16_t epoch, flags;
	uint32_t len, size;
	uint64_t offset, seq;
};

/* One stream of a lane, in the lane's area of the slab. written by: owner, but for fd (core). */
struct wf_stream {
	uint32_t fd;
	uint32_t tx_slot;  /* send whose frame is partly written; WF_NONE: none */
	uint32_t tx_done;  /* bytes of header and payload written of it */
	uint32_t rx_have;  /* header bytes arrived */
	uint64_t tx_data;  /* payload of that frame */
	uint64_t rx_data;  /* where the next payload byte goes */
	uint32_t rx_left;  /* payload bytes still to come; then the next header */
	uint32_t rx_slot;  /* receive they belong to */
	uint64_t tx_frame[4];
	uint64_t rx_frame[4];
	uint32_t rx_early; /* 1: the host reads the payload while it is written: the kernel must not write it */
	uint32_t zero;     /* 1: the kernel may send large payloads from where they lie */
	uint32_t zero_next; /* number of the next such write, which the kernel counts as well */
	uint32_t zero_open; /* of these, not reported yet */
	struct wf_zero {
		uint32_t slot, bytes; /* of its send; slot WF_NONE: it is reported, or none */
	} zeros[WF_ZEROS];        /* by number mod WF_ZEROS */
};

extern uint64_t wf_cover_key; /* random, below 2^61-1, and no peer's to know. written by: core, before the first comm */

/* before the comm is opened; stash: the peer's, of a sender */
void wf_stream_attach(struct wf_comm* comm, uint32_t lane, const int* fds, uint32_t n, uint32_t stash);
/* gate held: writes small sends that are done and have not left. 0: none are left, 1: some are; -1: errno */
int wf_coalesced_write(struct wf_comm* comm);
void wf_stream_cut(struct wf_comm* comm); /* zerocopy.c; after it has failed or is closed, before wf_stream_detach */
uint32_t wf_stream_detach(struct wf_comm* comm, int* fds, uint32_t room); /* after it is closed; number of streams */

#endif
