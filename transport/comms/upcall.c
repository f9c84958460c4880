/* upcall.c: binds struct wf_upcalls to the exported Go function. The table is const data, so that a fault before Go has
 * started finds it too: the call itself waits for Go. */
#include "upcall.h"
#include "_cgo_export.h"

static int fault(uint64_t cookie, const struct wf_fault* f) {
	return weftCoreFault(cookie, (struct wf_fault*)f);
}

static const struct wf_upcalls upcalls = {.fault = fault, .wants = weftCoreWants};

const struct wf_upcalls* weft_core_upcalls(void) { return &upcalls; }
