/* check.h: how a driver ends with what it found. */
#ifndef WEFT_CHECK_H
#define WEFT_CHECK_H

#include <stdio.h>
#include <stdlib.h>

#define CHECK(x, ...) \
	do { \
		if (!(x)) { \
			fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, #x); \
			fprintf(stderr, __VA_ARGS__); \
			fputc('\n', stderr); \
			exit(1); \
		} \
	} while (0)

#endif
