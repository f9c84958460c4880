/* lib.load: a function is called that no library has. */
#define TABLES 1 << 12
#include "../good.c"

int there_is_no_such_function(void);
int unused(void) { return there_is_no_such_function(); }
