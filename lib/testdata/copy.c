/* copy.c: a copy of NCCL, as far as a plugin can tell: a module with a log function of its own, which calls the plugin. A
 * process may have several, and each may go away. It calls v8, whose context is the process's, or v12, which gives one to each
 * communicator; released tables stay, so that these two stand for newer ones as well. */
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net_v12.h"
#include "net_v8.h"

static int heard;

static void say(ncclDebugLogLevel level, unsigned long flags, const char* file, int line, const char* fmt, ...) {
  char text[1024];
  va_list a;
  va_start(a, fmt);
  vsnprintf(text, sizeof text, fmt, a);
  va_end(a);
  if (strncmp(text, "NET/weft : ", 11) || !file || !*file || line <= 0 || !flags || level < 2) {
    printf("bad line: %d %#lx %s:%d %s\n", (int)level, flags, file, line, text);
    exit(1);
  }
  __atomic_add_fetch(&heard, 1, __ATOMIC_RELAXED);
}

/* Lines heard since the last call. */
int copy_heard(void) { return __atomic_exchange_n(&heard, 0, __ATOMIC_RELAXED); }

static ncclNet_v8_t* net8(void* lib) { return dlsym(lib, "ncclNetPlugin_v8"); }
static ncclNet_v12_t* net12(void* lib) { return dlsym(lib, "ncclNetPlugin_v12"); }

int copy_init8(void* lib) { return net8(lib)->init(say); }

int copy_init12(void* lib, void** ctx) {
  ncclNetCommConfig_v12_t config = {NCCL_NET_TRAFFIC_CLASS_UNDEF};
  return net12(lib)->init(ctx, 1, &config, say, NULL);
}

int copy_finalize(void* lib, void* ctx) { return net12(lib)->finalize(ctx); }

#define TRY(call) do { int r_ = (call); if (r_) { printf("%s: %d\n", #call, r_); return r_; } } while (0)

/* Connects to itself and moves a message. */
#define SIZE 65536

/* Connects to itself and moves a message; the versions differ in types only. */
#define MOVE(NAME, TABLE, NET, SIZE_T, CTX, PH, PHS) \
  int NAME(void* lib, void* ctx) { \
    TABLE* n = NET(lib); \
    static char out[SIZE], in[SIZE]; \
    char handle[NCCL_NET_HANDLE_MAXSIZE]; \
    void *l = NULL, *s = NULL, *r = NULL, *ms, *mr, *qs = NULL, *qr = NULL, *data = in; \
    SIZE_T size = SIZE; \
    int tag = 1, done = 0; \
    (void)ctx; \
    memset(out, 'x', SIZE); \
    memset(in, 0, SIZE); \
    TRY(n->listen(CTX 0, handle, &l)); \
    while (!s || !r) { \
      if (!s) TRY(n->connect(CTX 0, handle, &s, NULL)); \
      if (!r) TRY(n->accept(l, &r, NULL)); \
    } \
    TRY(n->regMr(s, out, SIZE, NCCL_PTR_HOST, &ms)); \
    TRY(n->regMr(r, in, SIZE, NCCL_PTR_HOST, &mr)); \
    while (!qr) TRY(n->irecv(r, 1, &data, &size, &tag, &mr PHS, &qr)); \
    while (!qs) TRY(n->isend(s, out, SIZE, tag, ms PH, &qs)); \
    while (!done) TRY(n->test(qs, &done, NULL)); \
    for (done = 0; !done;) TRY(n->test(qr, &done, NULL)); \
    TRY(n->deregMr(s, ms)); \
    TRY(n->deregMr(r, mr)); \
    TRY(n->closeSend(s)); \
    TRY(n->closeRecv(r)); \
    TRY(n->closeListen(l)); \
    return memcmp(in, out, SIZE) ? -1 : 0; \
  }

#define NOTHING
#define COMMA ,
MOVE(copy_move8, ncclNet_v8_t, net8, int, NOTHING, NOTHING, NOTHING)
static void* none;
MOVE(copy_move12, ncclNet_v12_t, net12, size_t, ctx COMMA, COMMA NULL, COMMA &none)
