/* inside.h: what the files of the guest tell each other. */
#ifndef WEFT_GUEST_INSIDE_H
#define WEFT_GUEST_INSIDE_H

#include <stddef.h>

#include "guest.h"

#define HIDDEN __attribute__((visibility("hidden")))

/* What Go needs. Threads: those that run Go (mostProcs in plugin/runtime.go), Go's own three, those that are inside
 * foreign code meanwhile (places.go), and five for short calls into the kernel. */
#define GUEST_THREADS 32
/* of each thread, whatever the host's default is: under mlockall all of it is memory */
#define GUEST_STACK (1024u << 10)
/* Go reserves 1.3 GiB when it starts. Its heap comes to that, in pieces of 64 MiB of which it uses the first from a
 * random place on (Go 1.26): it may need a second one soon. glibc takes as much for a thread that allocates. */
#define GUEST_SPACE (1728ull << 20)
#define GUEST_DATA (128ull << 20)    /* of it, what is written to */

/* limits.c: 0, or -1 and why not in text */
HIDDEN int guest_room(char* text, size_t size);
HIDDEN void guest_no_thread(char* text, size_t size, int have, int want);

/* threads.c: 0, or -1 and why not in text: there are the threads, and room besides */
HIDDEN int guest_keep_threads(char* text, size_t size);

/* signals.c */
HIDDEN void guest_signals_start(void); /* before Go starts */
HIDDEN uint64_t guest_block(void);     /* blocks what others may send; the mask before */
HIDDEN void guest_thread_of_go(void);  /* the calling thread, with all blocked, is about to become one of Go's */
HIDDEN void guest_unblock(uint64_t before);

#endif
