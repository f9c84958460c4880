#ifndef WEFT_SYSROOT_SYS_TYPES_H
#define WEFT_SYSROOT_SYS_TYPES_H
#include <stddef.h>
#include <stdint.h>
typedef int pid_t;
typedef long off_t;
typedef long ssize_t;
#endif
