/* rest.c: a thread of the host that does nothing but poll connects and accepts rests after WF_POLLS of them. On a host
 * with few processors it would take them from the handshakes that it waits for: of a thousand connects at once, polls
 * took a third of the CPU time. Whatever comes of any connect or accept from the first of these polls on ends the
 * rest. */
#define _GNU_SOURCE
#include "exec.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#define WF_POLLS 256u   /* in a row, of which nothing came */
#define WF_BUSY 100000u /* nanoseconds: a host that takes longer for them does other work between them, and goes on */
#define WF_REST 200000  /* nanoseconds at most */

/* The thread's polls since its last rest, or since one of which something came. */
static __thread struct {
	uint64_t since; /* the first */
	uint32_t polls;
	uint32_t epoch; /* at the first */
} wf_vain __attribute__((tls_model("initial-exec")));

void wf_polled(int vain) {
	const struct timespec most = {.tv_nsec = WF_REST};
	if (!vain || wf_self) { /* or it moves data as well */
		wf_vain.polls = 0;
		return;
	}
	if (!wf_vain.polls++) {
		wf_vain.epoch = wf_load(weft_progress_epoch);
		wf_vain.since = wf_clock();
	}
	if (wf_vain.polls < WF_POLLS) return;
	wf_vain.polls = 0;
	if (wf_clock() - wf_vain.since > WF_BUSY) return;
	const int before = errno;
	syscall(SYS_futex, &weft_progress_epoch, FUTEX_WAIT_PRIVATE, wf_vain.epoch, &most, NULL, 0);
	errno = before; /* woken, over or interrupted: all the same */
}
