/* The fuzzer of table calls: both ends of a few connections in one process, used rightly and wrongly by one seeded
 * sequence.
 *
 *  fuzz.c        the sequence: what is drawn, and the life of the connections
 *  fuzz_right.c  calls that must work, and a model of what they must bring
 *  fuzz_wrong.c  calls with something wrong in them, which must be refused and lose nothing */
#ifndef WEFT_FUZZ_H
#define WEFT_FUZZ_H

#include "host.h"

enum {
  PAIRS = 5,
  OPS = 40,        /* requests in flight of an end */
  MRS = 6,         /* registrations of an end */
  TAGS = 3,
  GROUP = 8,
  INDEXES = 4096,  /* messages of a tag that may be on their way */
  ROOM = 16 << 10, /* of a message */
  CANARY = 64,     /* bytes behind it that must stay as they are */
  PLACES = 256,    /* pieces of the arena, one per message under way */
  SPARE = 32,      /* further ones, for what is missing when the connections in use hold all others */
  DEAD = 128,      /* values that were good once */
};

struct mr {
  void* mh;
  int first, count, used; /* places; operations in flight */
};
struct op {
  void* req;
  bool flush;
  int n, tag[GROUP], place[GROUP];
  unsigned index[GROUP];
  struct mr* mr[GROUP];
};
struct end {
  void* comm;
  struct mr mr[MRS], spare; /* spare: of the further places, once they are needed */
  struct op op[OPS];
  unsigned posted[TAGS]; /* messages asked for, by tag */
};
struct pair {
  void* listen;
  struct end end[2]; /* SENDER, RECEIVER */
  bool spoiled;      /* used so that errors are in order until it is closed */
  uint64_t seed;
  int size[TAGS][INDEXES]; /* of the messages sent */
};
enum { SENDER, RECEIVER };

struct place {
  bool busy, quiet; /* quiet: nobody may write here, the bytes are those of sum */
  uint64_t sum;
};
struct fuzz {
  struct req* q;
  const struct table* t;
  void* ctx;
  uint64_t random;
  int ndev;
  int64_t calls, until;
  char* arena;
  struct place place[PLACES + SPARE];
  bool draining;
  struct pair pair[PAIRS];
  void *stray, *dead[DEAD]; /* stray: a listener for handles that are nearly right */
  unsigned ndead;
  char* log; /* a file that outlives the process: the calls made, the last ones */
  size_t log_len, log_at;
  int64_t refused, accepted, messages, bytes, opened, broken; /* counts for the reply */
};

/* fuzz.c */
uint64_t draw(struct fuzz* f, uint64_t below);
static inline bool chance(struct fuzz* f, unsigned percent) { return draw(f, 100) < percent; }
bool alive(const struct fuzz* f, const void* value); /* a value that some call may accept */
void buried(struct fuzz* f, void* value);
void note(struct fuzz* f, const char* fmt, ...) __attribute__((format(printf, 2, 3)));
/* what must not be: ends the run */
void wrong(struct fuzz* f, const char* fmt, ...) __attribute__((format(printf, 2, 3)));
static inline bool over(const struct fuzz* f) { return f->q->code != NULL; }
/* One call: noted before, counted, its code checked to be one of NCCL's. */
#define CALL(f, slot, call, ...)                    \
  ({                                                \
    note(f, slot " " __VA_ARGS__);                  \
    flight_enter(slot);                             \
    const int rc_ = (call);                         \
    flight_leave();                                 \
    called(f, slot, rc_);                           \
    rc_;                                            \
  })
void called(struct fuzz* f, const char* slot, int rc);
#define SLOT(f, s, ret, ...) ((ret(*)(__VA_ARGS__))slot_fn((f)->t, S_##s))

/* fuzz_right.c */
void right_open(struct fuzz* f, struct pair* p);
void right_call(struct fuzz* f, struct pair* p);
void right_drain(struct fuzz* f, struct pair* p); /* everything asked for must come */
void right_close(struct fuzz* f, struct pair* p, int end);
void right_end(struct fuzz* f);
char* place_at(const struct fuzz* f, int place);
bool fuzz_grouped(const struct fuzz* f);
int call_irecv(const struct fuzz* f, void* comm, int n, void** data, int64_t* sizes, int* tags, void** mh, void** req);
int call_iflush(const struct fuzz* f, void* comm, int n, void** data, int* sizes, void** mh, void** req);

/* fuzz_wrong.c */
void wrong_call(struct fuzz* f, struct pair* p);

#endif
