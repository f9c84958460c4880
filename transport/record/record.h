/* record.h: the recorder. Events become records of 64 bytes in a file that is mapped into memory, so that they are
 * still there when the process has been killed.
 *
 * The file is a header, cells of text, and chunks. A thread takes a chunk and writes it full, alone and without a lock;
 * then it takes the next, which overwrites the chunk that was taken longest ago and that no thread is still writing.
 * So the file holds the newest events of the process, those of busy threads as long as those of idle ones. What they
 * are understood by, communicators and connections, has chunks that no thread takes.
 *
 * A record's position is turn of its chunk * WEFT_CHUNK_RECORDS + its place there. It never comes twice in a file and
 * names the event that begins with the record. seq, its low half, is stored last: a record whose seq is not its
 * position's was never completed, or belongs to an earlier turn.
 *
 * What reads such files is Go without C: format/format.go has the same layout, and layout.go compares them. */
#ifndef WEFT_RECORD_H
#define WEFT_RECORD_H

#include <stdint.h>

#define WEFT_RECORD_VERSION 1
#define WEFT_CHUNK_BYTES 65536
#define WEFT_CHUNK_RECORDS 1024 /* place 0 is the chunk's head */
#define WEFT_CELL_BYTES 64
#define WEFT_CELL_TEXT 56
#define WEFT_CELLS 4096 /* a power of two */

enum weft_record_kind {
	WEFT_RECORD_START = 1,     /* an event of the host's profiler: type, id = its own position, parent, rank, a b c */
	WEFT_RECORD_STOP = 2,      /* id */
	WEFT_RECORD_STATE = 3,     /* id, flags = the state, a b c what came with it */
	WEFT_RECORD_MORE = 4,      /* the rest of the record before it: seven words */
	WEFT_RECORD_COMM = 5,      /* a communicator: see format.go */
	WEFT_RECORD_COMM_END = 6,  /* comm */
	WEFT_RECORD_LINK = 7,      /* a connection of the network */
	WEFT_RECORD_MESSAGE = 8,   /* a request of a connection begins */
	WEFT_RECORD_MESSAGE_END = 9,
	WEFT_RECORD_SAID = 10,
};

struct weft_record {
	uint32_t seq;
	uint8_t kind;  /* enum weft_record_kind */
	uint8_t type;  /* of the profiler's events: number of the bit that is their type */
	uint16_t comm; /* communicator, as COMM numbers them; 0: none */
	uint64_t time; /* CLOCK_MONOTONIC, ns */
	uint64_t id;
	uint64_t parent;
	int32_t rank;
	uint32_t flags;
	uint64_t a, b, c;
};

struct weft_more {
	uint32_t seq;
	uint8_t kind;
	uint8_t type;
	uint16_t comm;
	uint64_t word[7];
};

_Static_assert(sizeof(struct weft_record) == 64 && sizeof(struct weft_more) == 64, "a cache line each");

/* A text is in the file once; a name is its cell's number + 1, 0 is none. */
struct weft_cell {
	uint32_t state; /* 0: free, 1: being written, 2: complete */
	uint32_t length;
	char text[WEFT_CELL_TEXT];
};

struct weft_chunk {
	uint64_t turn;   /* from 1; 0: never taken */
	uint32_t active; /* a thread has it */
	uint32_t tid;
	uint32_t name;   /* of the thread, a cell's */
	uint32_t pad[11];
	struct weft_record record[WEFT_CHUNK_RECORDS - 1];
};

_Static_assert(sizeof(struct weft_chunk) == WEFT_CHUNK_BYTES, "a chunk");

/* The first page of the file. Written by who makes the file, but for turns to unnamed, and alive. */
struct weft_record_file {
	char magic[8]; /* "weftrec" */
	uint32_t version;
	uint32_t chunks;
	uint32_t cells_at; /* bytes from the file's beginning */
	uint32_t chunks_at;
	uint64_t pid;
	uint64_t mono; /* both clocks at one moment, ns */
	uint64_t real;
	uint8_t process[16]; /* drawn when the file is made */
	uint8_t boot[16];    /* of the machine: files of one boot have one clock */
	char host[64];
	char build[64];
	uint64_t turns;   /* chunks taken so far */
	uint64_t lost;    /* places of chunks that were overwritten */
	uint64_t refused; /* events of threads that found every chunk in use */
	uint64_t unnamed; /* texts that found no cell */
	uint64_t started; /* the process, in ticks of the machine, as /proc/PID/stat has it; 0: not known */
	uint64_t pids;    /* the number of the namespace in which pid counts; 0: not known */
	uint64_t alive;   /* when the process last showed that it runs, ns of the clock of records; twice a second */
};

/* The file is mapped at base and is written from now on, until the process ends. 0, or errno: no key per thread is
 * left, with which a thread that ends gives its chunk back. */
int weft_record_begin(struct weft_record_file* base);

extern struct weft_record_file* weft_record_base; /* NULL: nothing is recorded */

static inline int weft_recording(void) { return __atomic_load_n(&weft_record_base, __ATOMIC_ACQUIRE) != 0; }

/* The next n records (1 or 2) of the calling thread, with seq, kind and type still as they were; the position of the
 * first in *at. NULL: nothing is recorded, or every chunk is in use, which is counted. */
struct weft_record* weft_record_take(uint32_t n, uint64_t* at);
/* They are written. */
void weft_record_done(struct weft_record* r, uint32_t n, uint64_t at);

/* Whose net event the profiler's next one is: set by the network on its own thread, around the call. */
struct weft_cause {
	uint64_t link;    /* the connection's handle; 0: none of ours */
	uint64_t message;
	uint64_t entry;
};

void weft_record_causes(struct weft_cause cause);
struct weft_cause weft_record_cause(void);

/* 1: the last that this thread said of id was the same. */
int weft_record_said(uint64_t id, uint64_t what);

/* Writes a record where it stays longer than events do: what others are understood by, communicators and connections.
 * more: where it goes on, or NULL. One thread at a time. Its position, 0: it was refused. */
uint64_t weft_record_keep(const struct weft_record* r, const struct weft_more* more);

uint32_t weft_record_text(const char* text); /* its name; NULL and "" have none */
uint64_t weft_record_clock(void);            /* CLOCK_MONOTONIC, ns */

#endif
