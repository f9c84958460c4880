/* tuner.costs: what NCCL cannot do becomes cheap. */
#define COSTS(cost, n, id) ((cost)[(n) - 1] = 0, (void)(id))
#include "../good_tuner.c"
