#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "record.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define TRIES 64 /* chunks that are in use, before an event is refused */
#define BEHIND_SEQ sizeof(uint32_t)
#define PROBES 64 /* cells in which a text is looked for */
#define SAID 64  /* events of which a thread knows what it said last */
#define KEPT 128 /* chunks of what stays, at most, and an eighth of the file */

struct weft_record_file* weft_record_base;

/* Who has a chunk, and how far it is written. */
struct writer {
	struct weft_chunk* chunk;
	uint64_t position; /* of the next record */
	uint32_t left;
	uint32_t tid;
	uint32_t name;
};

/* What a thread has. The memory of threads in a library that is opened late is scarce: they have a pointer. */
struct thread {
	struct writer writer;
	struct weft_cause cause;
	struct {
		uint64_t id, what;
	} said[SAID];
};

/* What stays: chunks that no thread may take, until there are too many of them. Under the caller's lock. */
static struct {
	struct writer writer;
	struct weft_chunk* chunk[KEPT];
	uint32_t taken;
} kept;

static __thread struct thread* self __attribute__((tls_model("initial-exec")));
static pthread_key_t ends;

static struct weft_chunk* chunk(struct weft_record_file* f, uint64_t turn) {
	char* first = (char*)f + f->chunks_at;
	return (struct weft_chunk*)(void*)(first + (turn - 1) % f->chunks * WEFT_CHUNK_BYTES);
}

static void count(uint64_t* word, uint64_t more) { __atomic_fetch_add(word, more, __ATOMIC_RELAXED); }

static void introduce(struct writer* w) {
	char name[16] = "";
	w->tid = (uint32_t)syscall(SYS_gettid);
	pthread_getname_np(pthread_self(), name, sizeof name);
	w->name = weft_record_text(name);
}

static void let_go(struct weft_chunk* c) { __atomic_store_n(&c->active, 0u, __ATOMIC_RELEASE); }

/* A thread that ends leaves its chunk to others. */
static void leave(void* thread) {
	struct thread* t = thread;
	self = NULL;
	if (t->writer.chunk && weft_recording()) let_go(t->writer.chunk);
	free(t);
}

static struct thread* join(void) {
	struct thread* t = calloc(1, sizeof *t);
	if (!t) return NULL;
	if (pthread_setspecific(ends, t)) {
		free(t);
		return NULL;
	}
	self = t;
	return t;
}

/* The chunk that was just taken stays, and the oldest of those before is anybody's. */
static void keep(struct weft_record_file* f) {
	uint32_t most = f->chunks / 8 < KEPT ? f->chunks / 8 : KEPT, place = kept.taken++ % most;
	if (kept.chunk[place]) let_go(kept.chunk[place]);
	kept.chunk[place] = kept.writer.chunk;
}

/* The next chunk that no thread is writing. */
static int advance(struct weft_record_file* f, struct writer* w) {
	struct weft_chunk* own = w->chunk;
	for (int i = 0; i < TRIES; i++) {
		uint64_t turn = __atomic_add_fetch(&f->turns, 1, __ATOMIC_RELAXED);
		struct weft_chunk* next = chunk(f, turn);
		uint32_t free = 0;
		if (next != own &&
				!__atomic_compare_exchange_n(&next->active, &free, 1u, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			continue;
		if (next->turn > turn) { /* this thread slept while the others took every chunk once */
			if (next != own) let_go(next);
			continue;
		}
		if (!w->tid) introduce(w);
		if (next->turn) count(&f->lost, WEFT_CHUNK_RECORDS - 1);
		/* Its records are of no turn before they are of the new one. */
		__atomic_store_n(&next->turn, turn, __ATOMIC_RELEASE);
		next->tid = w->tid;
		next->name = w->name;
		w->chunk = next;
		w->left = WEFT_CHUNK_RECORDS - 1;
		w->position = turn * WEFT_CHUNK_RECORDS + 1;
		if (w == &kept.writer) keep(f);
		else if (own && own != next) let_go(own);
		return 0;
	}
	return -1;
}

static inline struct weft_record* take(struct writer* w, uint32_t n, uint64_t* at) {
	struct weft_record_file* f = __atomic_load_n(&weft_record_base, __ATOMIC_ACQUIRE);
	if (!f) return NULL;
	if (!w || (w->left < n && advance(f, w))) {
		count(&f->refused, 1);
		return NULL;
	}
	struct weft_record* r = &w->chunk->record[WEFT_CHUNK_RECORDS - 1 - w->left];
	*at = w->position;
	w->left -= n;
	w->position += n;
	return r;
}

struct weft_record* weft_record_take(uint32_t n, uint64_t* at) {
	if (!weft_recording()) return NULL;
	struct thread* t = self ? self : join();
	return take(t ? &t->writer : NULL, n, at);
}

int weft_record_said(uint64_t id, uint64_t what) {
	if (!self) return 0;
	uint64_t place = id % SAID;
	if (self->said[place].id == id && self->said[place].what == what) return 1;
	self->said[place].id = id;
	self->said[place].what = what;
	return 0;
}

void weft_record_causes(struct weft_cause cause) {
	if (self || join()) self->cause = cause;
}

struct weft_cause weft_record_cause(void) { return self ? self->cause : (struct weft_cause){0}; }

void weft_record_done(struct weft_record* r, uint32_t n, uint64_t at) {
	for (uint32_t i = n; i-- > 0;) __atomic_store_n(&r[i].seq, (uint32_t)(at + i), __ATOMIC_RELEASE);
}

uint64_t weft_record_keep(const struct weft_record* r, const struct weft_more* more) {
	uint64_t at;
	uint32_t n = more ? 2 : 1;
	struct weft_record* to = take(&kept.writer, n, &at);
	if (!to) return 0;
	memcpy((char*)to + BEHIND_SEQ, (const char*)r + BEHIND_SEQ, sizeof *r - BEHIND_SEQ);
	if (more) memcpy((char*)(to + 1) + BEHIND_SEQ, (const char*)more + BEHIND_SEQ, sizeof *more - BEHIND_SEQ);
	weft_record_done(to, n, at);
	return at;
}

static uint32_t hash(const char* text, uint32_t length) {
	uint32_t h = 2166136261u;
	for (uint32_t i = 0; i < length; i++) h = (h ^ (unsigned char)text[i]) * 16777619u;
	return h;
}

/* An open table that only grows: a cell is taken by one thread, and read by others once it is complete. */
uint32_t weft_record_text(const char* text) {
	struct weft_record_file* f = __atomic_load_n(&weft_record_base, __ATOMIC_ACQUIRE);
	uint32_t length = f && text ? (uint32_t)strnlen(text, WEFT_CELL_TEXT) : 0;
	if (!length) return 0;
	struct weft_cell* cells = (struct weft_cell*)(void*)((char*)f + f->cells_at);
	uint32_t first = hash(text, length);
	for (uint32_t i = 0; i < PROBES; i++) {
		uint32_t number = (first + i) % WEFT_CELLS, free = 0;
		struct weft_cell* c = &cells[number];
		if (__atomic_load_n(&c->state, __ATOMIC_ACQUIRE) == 0 &&
				__atomic_compare_exchange_n(&c->state, &free, 1u, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
			memcpy(c->text, text, length);
			c->length = length;
			__atomic_store_n(&c->state, 2u, __ATOMIC_RELEASE);
			return number + 1;
		}
		/* One that another thread is writing is passed: the text may then be there twice, which does no harm. */
		if (__atomic_load_n(&c->state, __ATOMIC_ACQUIRE) == 2 && c->length == length && !memcmp(c->text, text, length))
			return number + 1;
	}
	count(&f->unnamed, 1);
	return 0;
}

uint64_t weft_record_clock(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* A child shares the pages: what its one thread has is still being written by the parent's. */
static void in_child(void) { __atomic_store_n(&weft_record_base, NULL, __ATOMIC_RELEASE); }

int weft_record_begin(struct weft_record_file* base) {
	int key = pthread_key_create(&ends, leave);
	if (!key) key = pthread_atfork(NULL, NULL, in_child);
	if (!key) __atomic_store_n(&weft_record_base, base, __ATOMIC_RELEASE);
	return key;
}
