#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "host.h"

#include <dlfcn.h>
#include <unistd.h>

#include "nccl/common.h"

uintptr_t weft_host_module(uintptr_t address, const char** name) {
	Dl_info info;
	*name = "";
	/* An address is what dladdr wants; that it is a function's does not matter. */
	if (dladdr((void*)address, &info) == 0) return 0;
	if (info.dli_fname != NULL) *name = info.dli_fname;
	return (uintptr_t)info.dli_fbase;
}

void weft_host_log(uintptr_t logger, int level, unsigned long flags, const char* function, int line, const char* text) {
	/* "%s": a percent sign in a device or host name is no conversion. */
	((ncclDebugLogger_t)logger)((ncclDebugLogLevel)level, flags, function, line, "%s", text);
}

char** weft_host_environ(void) { return environ; }
