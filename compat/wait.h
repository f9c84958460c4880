/* Waiting with a deadline, for the tables whose calls block. */
#ifndef WEFT_COMPAT_WAIT_H
#define WEFT_COMPAT_WAIT_H

#include <stdint.h>

/* What is waited for, as the plugin's knobs and messages number it. */
enum { WAIT_CONNECT = 0, WAIT_ACCEPT = 1, WAIT_FLUSH = 2, WAIT_COLL_FLUSH = 3 };

struct wait {
  int kind;
  int64_t begin_ms, deadline_ms; /* monotonic */
};

/* Begins to wait; how long is asked of the plugin once. */
void weft_wait_begin(struct wait* w, int kind);

/* Sleeps until weft_progress_epoch is no longer seen, or for slice_ms; 0, or 1 when the deadline has passed. */
int weft_wait_epoch(const struct wait* w, uint32_t seen, int slice_ms);

/* Milliseconds waited so far. */
int64_t weft_wait_ms(const struct wait* w);

#endif
