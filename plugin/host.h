/* host.h: what the plugin asks of the process it lives in. */
#ifndef WEFT_PLUGIN_HOST_H
#define WEFT_PLUGIN_HOST_H

#include <stdint.h>

/* The module that holds the address: its base, and its name in *name. 0 when no module does. */
uintptr_t weft_host_module(uintptr_t address, const char** name);

/* 1: the module that holds the address defines the symbol, for others to see. */
int weft_host_exports(uintptr_t address, const char* symbol);

/* Says one line through a host's variadic logger. */
void weft_host_log(uintptr_t logger, int level, unsigned long flags, const char* file, int line, const char* text);

/* A callback for net events of table v10 that calls the given one, for steps that NCCL has begun an event of. 0: none.
 * There is one for the process, as of that table's contexts. */
uintptr_t weft_host_step_events(uintptr_t callback);

/* The environment as libc has it now. */
char** weft_host_environ(void);

#endif
