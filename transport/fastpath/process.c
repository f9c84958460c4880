/* process.c: what concerns the whole process: forked children, exit while connections drain, the progress word. */
#define _GNU_SOURCE
#include "exec.h"

#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#define WF_FDS (1u << 20) /* descriptors that can be tracked */
#define WF_DRAIN 2000000000u /* nanoseconds */
#define WF_SYSTEM_ERROR 2 /* ncclSystemError, in every table */

uint32_t weft_progress_epoch;
uint32_t wf_forked_child;
uint32_t wf_reaping;
uint32_t wf_exiting;

static uint64_t* wf_fds; /* a bit per descriptor; NULL: forks cannot be watched */
static uint64_t wf_upcalls_default;
static uint32_t wf_starts; /* of Go: those under way, and the one that succeeded */

void wf_set_default_upcalls(const struct wf_upcalls* upcalls) {
	wf_store(wf_upcalls_default, (uint64_t)(uintptr_t)upcalls);
}

const struct wf_upcalls* wf_default_upcalls(void) {
	return (const struct wf_upcalls*)(uintptr_t)wf_load(wf_upcalls_default);
}

/* Says it once, on stderr: the host's log function may wait for a lock whose holder does not exist in the child. */
static int wf_forked_told(void) {
	static const char line[] =
		"NET/weft : this process was forked from one in which NCCL had been initialized, and did not exec: "
		"no connection works in it, and every call fails. Fork before NCCL is initialized, "
		"or start the process with exec (in Python: multiprocessing's spawn)\n";
	static uint32_t told;
	if (!__atomic_exchange_n(&told, 1u, __ATOMIC_RELAXED) && write(STDERR_FILENO, line, sizeof line - 1) < 0)
		return WF_SYSTEM_ERROR;
	return WF_SYSTEM_ERROR;
}

void weft_starts(int32_t more) { __atomic_add_fetch(&wf_starts, (uint32_t)more, __ATOMIC_SEQ_CST); }

int weft_forked(void) { return wf_load(wf_forked_child) ? wf_forked_told() : 0; }

/* Only what is async-signal-safe: the child of a threaded process may do no more. Where nothing had begun, nothing
 * is missing. */
static void wf_in_child(void) {
	if (!wf_load(wf_starts)) return;
	wf_self = NULL; /* who has no record looks for the other */
	wf_store(wf_forked_child, 1u);
	for (uint32_t w = 0; w < WF_FDS / 64; w++)
		for (uint64_t bits = wf_load(wf_fds[w]); bits; bits &= bits - 1)
			close((int)(w * 64 + (uint32_t)__builtin_ctzll(bits)));
}

/* At load time, because a host may fork before it opens anything. */
__attribute__((constructor)) static void wf_process_start(void) {
	void* p = mmap(NULL, WF_FDS / 8, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p != MAP_FAILED && pthread_atfork(NULL, NULL, wf_in_child) == 0) wf_fds = p;
}

int wf_process_init(void) { return wf_fds ? 0 : ENOMEM; }

int wf_track_fd(int fd) {
	if (fd < 0 || (uint32_t)fd >= WF_FDS || !wf_fds) return EBADF;
	__atomic_fetch_or(&wf_fds[fd / 64], 1ull << (fd % 64), __ATOMIC_ACQ_REL);
	return 0;
}

void wf_untrack_fd(int fd) {
	if (fd >= 0 && (uint32_t)fd < WF_FDS && wf_fds)
		__atomic_fetch_and(&wf_fds[fd / 64], ~(1ull << (fd % 64)), __ATOMIC_ACQ_REL);
}

/* exit() must not cut connections whose last bytes are still on their way. */
__attribute__((destructor)) static void wf_drain(void) {
	uint64_t deadline = wf_clock() + WF_DRAIN; /* by the clock: on a busy machine a nap of 1 ms takes ten */
	wf_store(wf_exiting, 1u);
	while (wf_load(wf_reaping) && !wf_load(wf_forked_child) && wf_clock() < deadline)
		nanosleep(&(struct timespec){0, 1000000}, NULL);
}
