/* connect and accept for tables up to v4, whose hosts use the connection as
 * soon as the call returns. All ranks may connect before any accepts, on one
 * thread, so nothing here may depend on the peer's accept: the core completes
 * connections in the background and says so by weft_progress_epoch. */
#include <stddef.h>
#include <stdint.h>

#include "compat.h"
#include "wait.h"
#include "zz_calls.h"

/* The epoch is the signal; the slice only bounds how late a lost one is noticed. */
#define SLICE_MS 100

int weft_blocking_connect(int table, int dev, void* handle, void** sendComm) {
  *sendComm = NULL;
  struct wait w;
  weft_wait_begin(&w, WAIT_CONNECT);
  for (;;) {
    uint32_t seen = __atomic_load_n(&weft_progress_epoch, __ATOMIC_ACQUIRE);
    uintptr_t comm = 0;
    int rc = weft_call_net_connect((uintptr_t)table, dev, handle, &comm);
    if (rc || comm) {
      *sendComm = (void*)comm;
      return rc;
    }
    if (weft_wait_epoch(&w, seen, SLICE_MS)) return weft_blocking_timedout(WAIT_CONNECT, table, weft_wait_ms(&w));
    if ((rc = weft_forked())) return rc;
  }
}

int weft_blocking_accept(int table, void* listenComm, void** recvComm) {
  *recvComm = NULL;
  struct wait w;
  weft_wait_begin(&w, WAIT_ACCEPT);
  for (;;) {
    uint32_t seen = __atomic_load_n(&weft_progress_epoch, __ATOMIC_ACQUIRE);
    uintptr_t comm = 0;
    int rc = weft_call_net_accept((uintptr_t)listenComm, &comm);
    if (rc || comm) {
      *recvComm = (void*)comm;
      return rc;
    }
    if (weft_wait_epoch(&w, seen, SLICE_MS)) return weft_blocking_timedout(WAIT_ACCEPT, table, weft_wait_ms(&w));
    if ((rc = weft_forked())) return rc;
  }
}
