/* inside.h: what the files of the guest tell each other. */
#ifndef WEFT_GUEST_INSIDE_H
#define WEFT_GUEST_INSIDE_H

#include <stddef.h>

#include "guest.h"

#define HIDDEN __attribute__((visibility("hidden")))

/* What Go needs. Threads: those that run Go (mostProcs in plugin/runtime.go), Go's own three, and those that wait in the kernel or
 * in foreign code meanwhile. */
#define GUEST_THREADS 32
#define GUEST_SPACE (1024ull << 20) /* reserved when Go starts, and its heap */
#define GUEST_DATA (128ull << 20)   /* of it, what is written to */

/* limits.c: 0, or -1 and why not in text */
HIDDEN int guest_room(char* text, size_t size);
HIDDEN void guest_no_thread(char* text, size_t size, int have, int want);

/* threads.c */
HIDDEN int guest_keep_threads(char* text, size_t size);

/* signals.c */
HIDDEN void guest_signals_start(void); /* before Go starts */
HIDDEN uint64_t guest_block(void);     /* blocks what others may send; the mask before */
HIDDEN void guest_thread_of_go(void);  /* the calling thread, with all blocked, is about to become one of Go's */
HIDDEN void guest_unblock(uint64_t before);

#endif
