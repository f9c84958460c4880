#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "host.h"

#include <dlfcn.h>
#include <sys/resource.h>
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

static struct rlimit nofile;
static int nofile_known;

/* Package syscall raises the soft limit to the hard one while Go starts, for Go programs. This process is not one: a limit
 * above 1024 breaks its users of select(). Constructors with a priority run before those without, which start Go. */
__attribute__((constructor(101))) static void remember_nofile(void) {
	nofile_known = getrlimit(RLIMIT_NOFILE, &nofile) == 0;
}

void weft_host_nofile(uint64_t* soft, uint64_t* hard) {
	*soft = nofile_known ? nofile.rlim_cur : 0;
	*hard = nofile_known ? nofile.rlim_max : 0;
}
