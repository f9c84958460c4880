/* An NCCL that is made to load its plugins: a communicator of one rank. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

#include "host.h"

typedef struct {
  char internal[128];
} unique_id; /* ncclUniqueId, of every release */

/* Stops at the first call that fails, and says which. The communicator stays, and with it the plugins. */
static void c_nccl_init(struct req* q) {
  void *lib = ptr(q, "lib"), *comm = NULL;
  int version = 0, rc;
  unique_id id;
  int (*get_version)(int*) = (int (*)(int*))dlsym(lib, "ncclGetVersion");
  int (*get_id)(unique_id*) = (int (*)(unique_id*))dlsym(lib, "ncclGetUniqueId");
  int (*init)(void**, int, unique_id, int) = (int (*)(void**, int, unique_id, int))dlsym(lib, "ncclCommInitRank");
  const char* (*text)(int) = (const char* (*)(int))dlsym(lib, "ncclGetErrorString");
  if (!get_version || !get_id || !init || !text) return fail(q, "nolib", "it exports no ncclCommInitRank");
  const char* stage = "ncclGetVersion";
  PLUGIN(q, stage, rc = get_version(&version));
  out_num(q, "version", version);
  if (rc == 0) {
    stage = "ncclGetUniqueId";
    PLUGIN(q, stage, rc = get_id(&id));
  }
  if (rc == 0) {
    stage = "ncclCommInitRank";
    PLUGIN(q, stage, rc = init(&comm, 1, id, 0));
  }
  fflush(NULL); /* its log: it does not flush a pipe by itself */
  out_num(q, "result", rc);
  out_str(q, "stage", stage);
  out_str(q, "text", text(rc));
}

const struct command nccl_commands[] = {{"nccl.init", c_nccl_init}, {NULL, NULL}};
