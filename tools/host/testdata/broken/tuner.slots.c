/* tuner.slots: getCollInfo is NULL. */
#define GET_COLL_INFO NULL
#include "../good_tuner.c"
