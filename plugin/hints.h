/* hints.h: what NCCL says about the work to come (setNetAttr), on its progress thread and before each operation. It
 * is kept here, per context, without entering Go; the core asks when it makes a connection. weft_net_setNetAttr is
 * in zz_slow.h. */
#ifndef WEFT_PLUGIN_HINTS_H
#define WEFT_PLUGIN_HINTS_H

#include <stdint.h>

#include "zz_slow.h"

int weft_hints_keep(uintptr_t ctx); /* a new context, which nobody has said anything about; 0, or errno */
void weft_hints_drop(uintptr_t ctx);
void weft_hints_get(uintptr_t ctx, ncclNetAttr_cur_t* attr); /* zeroes where nobody has */

#endif
