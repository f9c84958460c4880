/* guest.h: how weft lives in a process that is not its own. Go is started by the first call that needs it, if there
 * is room, on threads kept for it; its threads take no signals of the host's; a host's thread is in Go without
 * signals. */
#ifndef WEFT_GUEST_H
#define WEFT_GUEST_H

#include <stdint.h>

/* What every call begins with that enters Go: 0, or the code to return. Starts Go when it has not been. Why that
 * cannot be is said through logger, a host's log function, or 0. */
int weft_enter(uintptr_t logger);

/* Gives the host's handlers the flag SA_ONSTACK where they lack it; returns those that lacked it since the last call
 * that asked, a bit per signal, signal 1 the lowest. */
uint64_t weft_signal_stacks(void);

/* 1: the calling thread is one of Go's, 0: it is the host's, or Go was not started by weft_enter. */
int weft_thread_of_go(void);

/* The limit of open files before Go raised it; 0: Go was not started by weft_enter. */
void weft_files_before_go(uint64_t* soft, uint64_t* hard);

#endif
