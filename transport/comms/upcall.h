/* upcall.h: the table through which the C executor reports faults to package comms. */
#ifndef WEFT_UPCALL_H
#define WEFT_UPCALL_H

#include "fastpath/fastpath.h"

const struct wf_upcalls* weft_core_upcalls(void);

#endif
