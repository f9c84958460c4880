/* flush for tables up to v3: iflush, then test until it is done. */
#include <stddef.h>
#include <stdint.h>

#include "compat.h"
#include "wait.h"
#include "zz_calls.h"

/* Nothing announces the end of a flush: short sleeps after a few tries. */
#define TRIES 64
#define SLICE_MS 1

/* Waits a little before the next test; 1 when the deadline has passed. */
static int pause_between(const struct wait* w, int tries) {
  if (tries < TRIES) return 0;
  return weft_wait_epoch(w, __atomic_load_n(&weft_progress_epoch, __ATOMIC_ACQUIRE), SLICE_MS);
}

int weft_blocking_flush(int table, void* recvComm, void* data, int size, void* mhandle) {
  void* request = NULL;
  int rc = weft_iflush(recvComm, 1, &data, &size, &mhandle, &request);
  if (rc || !request) return rc; /* no request: nothing to flush */
  struct wait w;
  weft_wait_begin(&w, WAIT_FLUSH);
  for (int tries = 0, done = 0;; tries++) {
    rc = weft_test(request, &done, NULL);
    if (rc || done) return rc;
    if (pause_between(&w, tries)) return weft_blocking_timedout(WAIT_FLUSH, table, weft_wait_ms(&w));
  }
}

int weft_coll_blocking_flush(int table, void* collComm, void* data, int size, void* mhandle) {
  uintptr_t request = 0;
  int rc = weft_call_collNet_iflush((uintptr_t)collComm, (uintptr_t)data, size, (uintptr_t)mhandle, &request);
  if (rc || !request) return rc;
  struct wait w;
  weft_wait_begin(&w, WAIT_COLL_FLUSH);
  for (int tries = 0, done = 0, got = 0;; tries++) {
    rc = weft_call_collNet_test(request, &done, &got);
    if (rc || done) return rc;
    if (pause_between(&w, tries)) return weft_blocking_timedout(WAIT_COLL_FLUSH, table, weft_wait_ms(&w));
  }
}
