/* A host that prints the number of each line that the plugin logs. Built as a program and as a library with its log function in it;
 * with MARK it has a function that only NCCLX exports, with RCCL one that only RCCL does, with DUMP one that newer ones do. */
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>

#include "nccl/net_v8.h"

#ifdef MARK
int ncclCommGetUniqueHash(void);
int ncclCommGetUniqueHash(void) { return 0; }
#endif

#ifdef RCCL
int ncclAllToAllv(void);
int ncclAllToAllv(void) { return 0; }
#endif

#ifdef DUMP
int ncclCommDump(void);
int ncclCommDump(void) { return 0; }
#endif

#ifndef ONLY_MARK
static void logger(ncclDebugLogLevel level, unsigned long flags, const char* file, int line, const char* fmt, ...) {
	char text[4096];
	va_list args;
	(void)flags, (void)file, (void)line;
	va_start(args, fmt);
	vsnprintf(text, sizeof text, fmt, args);
	va_end(args);
	printf("%d %s\n", (int)level, text);
}

int run(const char* library);
int run(const char* library) {
	void* plugin = dlopen(library, RTLD_NOW | RTLD_LOCAL);
	const ncclNet_v8_t* net = plugin ? dlsym(plugin, "ncclNetPlugin_v8") : NULL;
	if (!net) return fprintf(stderr, "%s\n", dlerror()), 1;
	if (net->init(logger) != ncclSuccess) return 1;
	return net->devices(NULL) == ncclSuccess;
}

#ifdef PROGRAM
/* With a second argument: the library to call run of. */
int main(int argc, char** argv) {
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc < 3) return run(argv[1]);
	void* host = dlopen(argv[2], RTLD_NOW | RTLD_LOCAL);
	int (*its)(const char*) = host ? (int (*)(const char*))dlsym(host, "run") : NULL;
	return its ? its(argv[1]) : (fprintf(stderr, "%s\n", dlerror()), 1);
}
#endif
#endif
