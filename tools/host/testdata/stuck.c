/* A library whose dlopen never returns. */
#include <unistd.h>

__attribute__((constructor)) static void stay(void) {
  for (;;) pause();
}
