/* chain.c: further profilers (WEFT_PROFILER_CHAIN). NCCL loads one profiler; this library forwards to others what it
 * hears. Which there are is decided once. Each has one mask for all communicators, as under NCCL. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "profile.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COMMS (UINT16_MAX + 1)

int weft_chain_length;
struct chained weft_chain[CHAIN_MAX];

/* By the number that is the host's context. They stay: events of a communicator that has ended may still come. */
static struct chain_comm* _Atomic comms[COMMS];

/* Go's, in chain.go. */
void weft_chain_refused(int which, int result, uintptr_t logger);
void weft_chain_ended(void);

static const struct weft_chain_profiler* const* _Atomic versions; /* the newest first */
static _Atomic int version_count;

void weft_chain_know(const struct weft_chain_profiler* const* all, int count) {
	atomic_store(&versions, all);
	atomic_store(&version_count, count);
}

/* A library's best table for a host of the given version. */
static const struct weft_chain_profiler* choose(void* library, int host, const void** table) {
	const struct weft_chain_profiler* best = NULL;
	const struct weft_chain_profiler* const* all = atomic_load(&versions);
	for (int i = 0, n = atomic_load(&version_count); i < n; i++) {
		const void* found = dlsym(library, all[i]->symbol);
		if (!found) continue;
		best = all[i];
		*table = found;
		if (best->version <= host) break;
	}
	return best;
}

static const void* base_of(const void* address) {
	Dl_info info;
	return dladdr(address, &info) ? info.dli_fbase : NULL;
}

/* NCCL takes a name as a file's and as the middle of one. */
static void* open_library(const char* library, char* why, size_t room) {
	char file[1024];
	void* handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
	if (handle) return handle;
	const char* first = dlerror();
	snprintf(why, room, "%s", first ? first : "no such library");
	if (strchr(library, '/')) return NULL;
	if (snprintf(file, sizeof file, "libnccl-profiler-%s.so", library) >= (int)sizeof file) return NULL;
	handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);
	const char* second = handle ? NULL : dlerror();
	if (second) snprintf(why + strlen(why), room - strlen(why), "; %s", second);
	return handle;
}

int weft_chain_open(const char* library, int host, const char** name, char* why, size_t room) {
	const void* table = NULL;
	if (weft_chain_length == CHAIN_MAX) {
		snprintf(why, room, "%d profilers are the most", CHAIN_MAX);
		return 0;
	}
	void* handle = open_library(library, why, room);
	if (!handle) return 0;
	const struct weft_chain_profiler* as = choose(handle, host, &table);
	const char* wrong = NULL;
	if (!as) wrong = "it exports no profiler that is known here";
	else if (base_of(table) == base_of(&weft_chain_length)) wrong = "this is weft itself";
	for (int i = 0; i < weft_chain_length; i++) {
		if (weft_chain[i].table == table) wrong = "it is in the list already";
	}
	if (wrong) {
		snprintf(why, room, "%s", wrong);
		dlclose(handle);
		return 0;
	}
	*name = *(const char* const*)table; /* every version begins with its name */
	if (!weft_chain_length && weft_chain_room()) {
		snprintf(why, room, "no memory for its events");
		dlclose(handle);
		return 0;
	}
	weft_chain[weft_chain_length] = (struct chained){.as = as, .table = table, .name = *name};
	weft_chain_length++;
	return as->version;
}

struct chain_comm* weft_chain_comm(uintptr_t context) {
	return context < COMMS ? atomic_load_explicit(&comms[context], memory_order_acquire) : NULL;
}

int weft_chain_begin(int n, int own, int allowed, uint64_t id, const char* name, int nodes, int ranks, int rank,
		uintptr_t logger) {
	struct chain_comm* c = calloc(1, sizeof *c);
	if (!c) return ENOMEM;
	*c = (struct chain_comm){.own = own, .allowed = allowed, .id = id, .name = name ? strdup(name) : NULL,
		.nodes = nodes, .ranks = ranks, .rank = rank, .logger = logger};
	if (name && !c->name) {
		free(c);
		return ENOMEM;
	}
	atomic_store_explicit(&comms[n], c, memory_order_release);
	return 0;
}

/* A host's mask: one for each copy of NCCL in the process, which reads it whenever something begins. */
#define HOSTS 8
static struct {
	int* mask;
	int own, allowed, said, comms;
} hosts[HOSTS];
static pthread_mutex_t hosts_lock = PTHREAD_MUTEX_INITIALIZER;

/* What is asked of a host. Under the lock. */
static int wanted_of(int own, int allowed) {
	int wanted = own;
	for (int i = 0; i < weft_chain_length; i++) {
		if (!weft_chain[i].comms) continue;
		int its = __atomic_load_n(&weft_chain[i].mask, __ATOMIC_RELAXED) & allowed;
		wanted |= (int)((uint64_t)(unsigned)its & weft_chain[i].as->kinds);
	}
	return wanted;
}

static void tell(int h) {
	int wanted = wanted_of(hosts[h].own, hosts[h].allowed);
	if (wanted == hosts[h].said) return;
	hosts[h].said = wanted;
	__atomic_store_n(hosts[h].mask, wanted, __ATOMIC_RELAXED);
}

static void tell_host(struct chain_comm* c, int* mask) {
	pthread_mutex_lock(&hosts_lock);
	for (int i = 0; i < weft_chain_length; i++) weft_chain[i].comms += !c->of[i].refused;
	int h = 0;
	while (h < HOSTS && hosts[h].comms) h++; /* a free place, unless the host has one */
	for (int i = 0; i < HOSTS; i++) {
		if (hosts[i].comms && hosts[i].mask == mask) h = i;
	}
	if (h < HOSTS) {
		hosts[h].mask = mask;
		hosts[h].own = c->own;
		hosts[h].allowed = c->allowed;
		hosts[h].comms++;
		hosts[h].said = wanted_of(c->own, c->allowed);
		c->host = h + 1;
	}
	/* More hosts than there are places hear no changes. */
	__atomic_store_n(mask, wanted_of(c->own, c->allowed), __ATOMIC_RELAXED);
	pthread_mutex_unlock(&hosts_lock);
}

void weft_chain_poll(void) {
	pthread_mutex_lock(&hosts_lock);
	for (int h = 0; h < HOSTS; h++) {
		if (hosts[h].comms) tell(h);
	}
	pthread_mutex_unlock(&hosts_lock);
}

void weft_chain_init(uintptr_t context, int* mask) {
	struct chain_comm* c = weft_chain_length ? weft_chain_comm(context) : NULL;
	if (!c) return;
	for (int i = 0; i < weft_chain_length; i++) {
		struct chained* p = &weft_chain[i];
		uintptr_t its = 0;
		int rc = p->as->init(p->table, &its, c->id, &p->mask, c->name, c->nodes, c->ranks, c->rank, c->logger);
		if (rc) weft_chain_refused(i, rc, c->logger);
		c->of[i].refused = rc != 0;
		c->of[i].context = rc ? 0 : its;
	}
	c->logger = 0;
	tell_host(c, mask);
}

void weft_chain_finalize(uintptr_t context) {
	struct chain_comm* c = weft_chain_length ? weft_chain_comm(context) : NULL;
	if (!c) return;
	atomic_store_explicit(&c->ended, true, memory_order_release);
	for (int i = 0; i < weft_chain_length; i++) {
		uintptr_t of = atomic_exchange(&c->of[i].context, 0);
		if (of) weft_chain[i].as->finalize(weft_chain[i].table, of);
	}
	pthread_mutex_lock(&hosts_lock);
	for (int i = 0; !c->counted_out && i < weft_chain_length; i++) weft_chain[i].comms -= !c->of[i].refused;
	c->counted_out = true;
	if (c->host) hosts[c->host - 1].comms--;
	c->host = 0;
	pthread_mutex_unlock(&hosts_lock);
	weft_chain_ended();
}

/* What tables before v4 say with each event. */
static __thread __attribute__((tls_model("initial-exec"))) const char* said_name;
static __thread __attribute__((tls_model("initial-exec"))) uint64_t said_hash;

void weft_chain_says(const char* name, uint64_t hash) {
	said_name = name;
	said_hash = hash;
}

void weft_chain_about(const struct chain_comm* c) {
	if (c->id || c->name) weft_chain_says(c->name, c->id);
}

const char* weft_chain_name(void) { return said_name; }
uint64_t weft_chain_hash(void) { return said_hash; }

static __thread __attribute__((tls_model("initial-exec"))) int said_steps;

void weft_chain_moves(int steps) { said_steps = steps; }
int weft_chain_steps(void) { return said_steps; }
