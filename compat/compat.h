/* What every table's file sees: the core in Go and in C, and the hand-written
 * adapters. An adapter takes the table's version and the slot's parameters; it
 * names structs by their _cur_t aliases only, and reaches the Go core through
 * zz_calls.h, so that newer headers need no edit here. */
#ifndef WEFT_COMPAT_H
#define WEFT_COMPAT_H

#include "chain.h"
#include "fastpath.h"
#include "guest.h"
#include "zz_slow.h"

/* blocking.c */
int weft_blocking_connect(int table, int dev, void* handle, void** sendComm);
int weft_blocking_accept(int table, void* listenComm, void** recvComm);

/* flush.c */
int weft_blocking_flush(int table, void* recvComm, void* data, int size, void* mhandle);
int weft_coll_blocking_flush(int table, void* collComm, void* data, int size, void* mhandle);

/* v2.c */
int weft_v2_pci_path(int table, int dev, char** path);
int weft_v2_ptr_support(int table, int dev, int* supportedTypes);

/* codes.c */
const char* weft_v1_func(uint8_t code);
const char* weft_v1_datatype(uint8_t code);
const char* weft_v1_algo(uint8_t code);
const char* weft_v1_proto(uint8_t code);
uint8_t weft_v1_func_code(const char* name);
uint8_t weft_v1_datatype_code(const char* name);
uint8_t weft_v1_algo_code(const char* name);
uint8_t weft_v1_proto_code(const char* name);

/* chain.c */
void weft_chain_versions(void);

#endif
