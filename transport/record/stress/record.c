/* record.c: threads that come and go write more than a small file holds, while text is named and what stays is
 * kept. Afterwards the file must be whole: each record is the one that was written at its place, the records of a
 * thread are its newest without a gap, and what was kept is there. Arguments: seed and rounds, which the other drivers
 * take, too. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "record.h"

#include "check.h"

#define CHUNKS 24
#define WRITERS 6

static struct weft_record_file* file;
static uint64_t writers; /* numbers given out */
static uint64_t *newest, *oldest, *found; /* of each writer: its last record, its first, how many there are */

static void* write_some(void* rounds) {
	uint64_t self = __atomic_add_fetch(&writers, 1, __ATOMIC_RELAXED), n = *(uint64_t*)rounds * 3001;
	char name[24];
	snprintf(name, sizeof name, "writer %d", (int)(self % 50));
	for (uint64_t i = 1; i <= n; i++) {
		uint64_t at;
		uint32_t parts = i % 7 ? 1 : 2;
		struct weft_record* r = weft_record_take(parts, &at);
		CHECK(r, "refused");
		*r = (struct weft_record){.kind = WEFT_RECORD_START, .time = weft_record_clock(), .id = at, .a = self, .b = i,
			.c = weft_record_text(name)};
		if (parts == 2)
			*(struct weft_more*)(void*)(r + 1) = (struct weft_more){.kind = WEFT_RECORD_MORE, .word = {at, i}};
		weft_record_done(r, parts, at);
		CHECK(weft_record_said(at, 1) == 0 && weft_record_said(at, 1) == 1, "said");
	}
	return NULL;
}

static struct weft_chunk* chunk(int i) {
	return (struct weft_chunk*)(void*)((char*)file + file->chunks_at + (size_t)i * WEFT_CHUNK_BYTES);
}

static void look(uint64_t* kept) {
	for (int i = 0; i < CHUNKS; i++) {
		struct weft_chunk* c = chunk(i);
		for (uint64_t place = 1; c->turn && place < WEFT_CHUNK_RECORDS; place++) {
			struct weft_record* r = &c->record[place - 1];
			uint64_t at = c->turn * WEFT_CHUNK_RECORDS + place;
			if (r->seq != (uint32_t)at) continue;
			*kept += r->kind == WEFT_RECORD_LINK;
			if (r->kind != WEFT_RECORD_START) continue;
			CHECK(r->id == at, "a record of position %lu says %lu", (unsigned long)at, (unsigned long)r->id);
			uint64_t w = r->a;
			struct weft_cell* cells = (struct weft_cell*)(void*)((char*)file + file->cells_at);
			CHECK(w <= writers && r->c && cells[r->c - 1].state == 2, "text");
			if (r->b > newest[w]) newest[w] = r->b;
			if (!found[w]++ || r->b < oldest[w]) oldest[w] = r->b;
			if (r->b % 7) continue;
			struct weft_more* m = (struct weft_more*)(void*)(r + 1);
			CHECK(m->seq == (uint32_t)(at + 1) && m->word[0] == at && m->word[1] == r->b, "more");
		}
	}
}

#ifndef __SANITIZE_THREAD__
static int active(void) {
	int n = 0;
	for (int i = 0; i < CHUNKS; i++) n += (int)__atomic_load_n(&chunk(i)->active, __ATOMIC_ACQUIRE);
	return n;
}
#endif

/* A child whose thread ends leaves the chunk to its parent, which is still writing there. (Not under TSan, whose own
 * thread keeps such a child alive.) */
static void forked(void) {
#ifndef __SANITIZE_THREAD__
	uint64_t at;
	struct weft_record* r = weft_record_take(1, &at);
	CHECK(r, "refused");
	weft_record_done(r, 1, at);
	int status = 0, before = active();
	pid_t child = fork();
	if (!child) {
		if (weft_record_take(1, &at)) _exit(1);
		pthread_exit(NULL);
	}
	CHECK(child > 0 && waitpid(child, &status, 0) == child && !status, "the child ended with %d", status);
	CHECK(active() == before, "%d chunks are in use, %d were", active(), before);
#endif
}

int main(int argc, char** argv) {
	uint64_t rounds = argc > 2 ? strtoul(argv[2], NULL, 0) : 2, sum = 0, kept = 0;
	size_t bytes = 4096 + WEFT_CELLS * sizeof(struct weft_cell) + CHUNKS * sizeof(struct weft_chunk);
	file = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(file != MAP_FAILED, "memory");
	file->chunks = CHUNKS;
	file->cells_at = 4096;
	file->chunks_at = 4096 + WEFT_CELLS * sizeof(struct weft_cell);
	uint64_t at;
	CHECK(!weft_record_take(1, &at) && !weft_record_text("nobody"), "nothing is recorded yet");
	CHECK(weft_record_begin(file) == 0, "key");
	for (uint64_t round = 0; round < rounds; round++) {
		pthread_t t[WRITERS];
		for (int i = 0; i < WRITERS; i++) CHECK(!pthread_create(&t[i], NULL, write_some, &rounds), "thread");
		struct weft_record link = {.kind = WEFT_RECORD_LINK, .id = round + 1};
		CHECK(weft_record_keep(&link, NULL), "kept");
		for (int i = 0; i < WRITERS; i++) pthread_join(t[i], NULL);
	}
	newest = calloc(writers + 1, 8);
	oldest = calloc(writers + 1, 8);
	found = calloc(writers + 1, 8);
	CHECK(newest && oldest && found, "memory");
	look(&kept);
	for (uint64_t w = 1; w <= writers; w++) {
		CHECK(!found[w] || newest[w] - oldest[w] + 1 == found[w], "writer %lu has a gap", (unsigned long)w);
		CHECK(!found[w] || newest[w] == rounds * 3001, "writer %lu lacks its newest", (unsigned long)w);
		sum += found[w];
	}
	CHECK(kept == rounds, "%lu of %lu stayed", (unsigned long)kept, (unsigned long)rounds);
	CHECK(!file->refused && file->lost && sum > (CHUNKS / 2) * 800, "%lu records", (unsigned long)sum);
	for (int i = 0, active = 0; i < CHUNKS; i++) {
		active += (int)chunk(i)->active;
		CHECK(active <= 1, "chunks of threads that have ended are still theirs");
	}
	forked();
	printf("record: %lu records of %lu writers in %d chunks, %lu places lost\n", (unsigned long)sum,
		(unsigned long)writers, CHUNKS, (unsigned long)file->lost);
	free(newest);
	free(oldest);
	free(found);
	return 0;
}
