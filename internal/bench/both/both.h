/* both.h: what the loop and the plugin that is only verbs calls share. */
#ifndef WEFT_BOTH_H
#define WEFT_BOTH_H

#include "nccl/net_v12.h"

/* The table that is measured, which is called by hand: budgets of instructions are its. */
#define MEASURED "ncclNetPlugin_v12"

enum { WINDOW = 32 };
extern size_t message_size;
extern ncclNet_v12_t floor_net;
_Noreturn void die(const char* fmt, ...) __attribute__((format(printf, 1, 2)));
void must(int rc, const char* call);

#endif
