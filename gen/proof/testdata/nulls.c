/* Calls every function of every table with one argument spoilt, against a core that only says that it was reached. The test
 * puts in the calls. Built with sanitizers: a NULL that is followed ends the program, after the line that names the call. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* HEADERS */
/* TABLES */
static char room[1 << 16]; /* what every pointer points to */
static const char *call, *refused;
static int failures;
int reached;
uint32_t weft_progress_epoch;

int weft_forked(void) { return 0; }
int weft_enter(uintptr_t logger) { return logger == 1; }
int64_t weft_blocking_deadline_ms(int kind) { return kind < 0; }
int weft_connect_waits(const void* handle, void** comm) { return !handle || !comm; }
int weft_accept_waits(uintptr_t listen, void** comm) { return !comm; }
struct weft_chain_profiler;
void weft_chain_know(const struct weft_chain_profiler* const* all, int count) { (void)all; (void)count; }
void weft_chain_init(uintptr_t context, int* mask) { *mask += (int)context; }
void weft_chain_finalize(uintptr_t context) { (void)context; }
void weft_chain_says(const char* name, uint64_t hash) { (void)name, (void)hash; }
const char* weft_chain_name(void) { return ""; }
uint64_t weft_chain_hash(void) { return 0; }
void weft_chain_moves(int steps) { (void)steps; }
int weft_chain_steps(void) { return 0; }
int weft_null(const char* function, const char* name) { return refused = name, function ? 3 : 0; }
int weft_misuse(const char* function, const char* what, uint64_t got) { return refused = what, function && got != 1 ? 3 : 0; }

static void begin(const char* what) {
	call = what, refused = NULL, reached = 0;
	memset(room, 0, sizeof room);
	printf("%s\n", call);
	fflush(stdout);
}

/* want: the parameter by whose name the call is refused; NULL: it reaches the core. */
static void end(int rc, const char* want) {
	size_t n = want ? strlen(want) : 0;
	int ok = want ? rc == 3 && !reached && refused && !strncmp(refused, want, n) && (!refused[n] || refused[n] == ' ') : !refused && reached;
	if (ok) return;
	printf("FAILED: %s: answered %d, the core was reached %d times, refused for \"%s\"; expected %s\n", call, rc, reached, refused ? refused : "", want ? want : "a call of the core");
	failures++;
}

int main(void) {
/* CALLS */
	if (failures) printf("%d failed\n", failures);
	else printf("ok\n");
	return failures != 0;
}
