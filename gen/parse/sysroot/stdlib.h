#include <stddef.h>
#include <sys/types.h>
