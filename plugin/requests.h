/* requests.h: the words by which test of the collective tables knows how far an operation is. NCCL asks all the
 * time, and while a request is pending that makes its comm work. A comm has a block of words. weft_coll_test is in
 * zz_slow.h. */
#ifndef WEFT_PLUGIN_REQUESTS_H
#define WEFT_PLUGIN_REQUESTS_H

#include <stdint.h>

#define WEFT_BLOCK 32        /* requests of a comm */
#define WEFT_AWAITED 64      /* messages that a comm waits for, and ends of groups of them */
#define WEFT_REQUEST_KIND 8 /* the highest 4 bits of a request, apart from those of other handles */

int weft_block_open(uintptr_t comm, uint32_t* block); /* a block that nobody has; 0, or errno */
void weft_block_close(uint32_t block); /* its requests are not known any more */
uintptr_t weft_request_take(uint32_t block); /* 0: all are in use. One thread at a time, for each block */
void weft_request_done(uintptr_t request, int size);
void weft_request_fail(uintptr_t request, int code);
/* Groups of requests of the net, 0 behind each, and others. Until all of a group are done, or any has failed, test
 * looks at them, which makes them move, and asks no help: entering Go takes five system calls. One thread at a time,
 * for each block. None, which any thread may say: it always asks. */
void weft_block_await(uint32_t block, const uintptr_t* requests, uint32_t n);
uint32_t weft_block_looked(uint32_t block); /* 1: test has looked at them since the last call */

void weft_coll_help(uintptr_t comm); /* has the caller's thread do what a comm can do now */

#endif
