/* tuner.agrees: the second communicator of a process is told something else. */
#define COSTS(cost, n, id) ((cost)[0] += (n) > 2 ? (float)(id) : 0)
#include "../good_tuner.c"
