#ifndef WEFT_SYSROOT_LIMITS_H
#define WEFT_SYSROOT_LIMITS_H
#define INT_MAX 0x7fffffff
#define INT_MIN (-INT_MAX - 1)
#define UINT_MAX 0xffffffffU
#define PATH_MAX 4096
#endif
