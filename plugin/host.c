#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "host.h"

#include <dlfcn.h>
#include <unistd.h>

#include "nccl/common.h"
#include "nccl/profiler_net.h"

uintptr_t weft_host_module(uintptr_t address, const char** name) {
	Dl_info info;
	*name = "";
	/* An address is what dladdr wants; that it is a function's does not matter. */
	if (dladdr((void*)address, &info) == 0) return 0;
	if (info.dli_fname != NULL) *name = info.dli_fname;
	return (uintptr_t)info.dli_fbase;
}

int weft_host_exports(uintptr_t address, const char* symbol) {
	Dl_info holds, defines;
	if (dladdr((void*)address, &holds) == 0 || holds.dli_fname == NULL) return 0;
	void* module = dlopen(holds.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
	if (!module) module = dlopen(NULL, RTLD_LAZY | RTLD_NOLOAD); /* a program is not found by its name */
	if (!module) return 0;
	/* The look-up goes on in what the module needs: another copy of NCCL may be there. */
	void* found = dlsym(module, symbol);
	int own = found && dladdr(found, &defines) && defines.dli_fbase == holds.dli_fbase;
	dlclose(module);
	return own;
}

void weft_host_log(uintptr_t logger, int level, unsigned long flags, const char* file, int line, const char* text) {
	/* "%s": a percent sign in a device or host name is no conversion. */
	((ncclDebugLogger_t)logger)((ncclDebugLogLevel)level, flags, file, line, "%s", text);
}

static uintptr_t step_callback;

/* NCCL 2.27 follows the second word of what it hands over with a request, and leaves it empty where its profiler wants
 * neither proxy steps nor net events, as NCCL's inspector: it crashes. 2.28 and later always set it. In 2.26, whose
 * request has another form, that word is no pointer, and the callback does not follow it. */
static ncclResult_t step_event(void** event, int type, void* parent, int64_t id, void* what) {
	ncclProfilerCallback_t call = (ncclProfilerCallback_t)__atomic_load_n(&step_callback, __ATOMIC_ACQUIRE);
	if (type == ncclProfilerNetEventStart && !((void**)parent)[1]) return ncclSuccess;
	return call(event, type, parent, id, what);
}

uintptr_t weft_host_step_events(uintptr_t callback) {
	if (!callback) return 0;
	__atomic_store_n(&step_callback, callback, __ATOMIC_RELEASE);
	return (uintptr_t)step_event;
}

char** weft_host_environ(void) { return environ; }
