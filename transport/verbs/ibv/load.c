/* load.c: finds libibverbs and its functions at run time, so that weft neither needs the library to be built nor to
 * be loaded. Symbols are asked for with their version, as a linked program would; a library without versions will do
 * too. */
#define _GNU_SOURCE
#include "load.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

void* weft_symbol(void* library, const char* name, const char* version) {
	void* p = dlvsym(library, name, version);
	return p ? p : dlsym(library, name);
}

struct weft_ibv* weft_ibv_load(const char* name, char* why, size_t size, int* missing) {
	*missing = 0;
	void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		const char* text = dlerror();
		*missing = text && strstr(text, "No such file") != NULL;
		snprintf(why, size, "%s", text ? text : name);
		return NULL;
	}
	struct weft_ibv* v = calloc(1, sizeof(*v));
	if (!v) {
		snprintf(why, size, "%s: out of memory", name);
		dlclose(library);
		return NULL;
	}
	const char* lacks = NULL;
	void* p;
#define FIND(member, function, version, required) \
	p = weft_symbol(library, #function, version); \
	memcpy(&v->member, &p, sizeof(p)); \
	if (required && !p && !lacks) lacks = #function "@" version;
	WEFT_IBV_SYMBOLS(FIND)
#undef FIND
	if (lacks) {
		snprintf(why, size, "%s has no %s: it is no libibverbs that weft can use", name, lacks);
		free(v);
		dlclose(library);
		return NULL;
	}
	return v; /* never unloaded: its providers keep threads and handlers */
}
