/* An NCCL of which only that is there which weft check calls: it opens the plugin that LIB names and begins its newest net table, or fails. */
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct {
  char internal[128];
} id_t_;

typedef void (*logger_t)(int, unsigned long, const char*, int, const char*, ...);

static void log_it(int level, unsigned long flags, const char* file, int line, const char* fmt, ...) {
  va_list a;
  (void)flags, (void)file, (void)line;
  if (level > 3) return;
  va_start(a, fmt);
  printf("vm:1:1 [0] NCCL INFO ");
  vprintf(fmt, a);
  printf("\n");
  va_end(a);
}

int ncclGetVersion(int* v) { return *v = VERSION, 0; }
int ncclGetUniqueId(id_t_* id) { return id->internal[0] = 1, 0; }
const char* ncclGetErrorString(int rc) { return rc ? "unhandled cuda error" : "no error"; }

int ncclCommInitRank(void** comm, int n, id_t_ id, int rank) {
  (void)n, (void)id, (void)rank;
#ifdef FAILS
  return 1;
#endif
#ifdef DIES
  abort();
#endif
  const char *lib = getenv("LIB"), *plugin = getenv("NCCL_NET_PLUGIN");
  char named[256];
  if (!lib && plugin && plugin[0]) {
    snprintf(named, sizeof named, "libnccl-net-%s.so", plugin);
    lib = named;
    printf("vm:1:1 [0] NCCL INFO NCCL_NET_PLUGIN set by environment to %s\n", plugin);
  }
  void* h = lib ? dlopen(lib, RTLD_NOW | RTLD_LOCAL) : NULL;
#if VERSION >= 23004
  void* context = NULL;
  int config[16] = {0};
  struct {
    const char* name;
    int (*init)(void** context, unsigned long long comm, void* config, logger_t, void* profiler);
  }* net = h ? dlsym(h, "ncclNetPlugin_v12") : NULL;
  if (net) net->init(&context, 1, config, log_it, NULL);
  if (net && plugin) printf("vm:1:1 [0] NCCL INFO NET/Plugin: Loaded net plugin %s (v12)\n", plugin);
#else
  struct {
    const char* name;
    int (*init)(logger_t);
  }* net = h ? dlsym(h, "ncclNetPlugin_v8") : NULL;
  if (net) net->init(log_it);
#endif
  printf("vm:1:1 [0] NCCL INFO Using network %s\n", net ? net->name : "Socket");
  *comm = (void*)1;
  return 0;
}
