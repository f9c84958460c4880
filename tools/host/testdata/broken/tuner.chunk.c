/* tuner.chunk: chunks have no bytes. */
#define CHUNK 0
#include "../good_tuner.c"
