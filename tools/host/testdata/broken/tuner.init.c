/* tuner.init: init fails for the third communicator. */
#define INIT t_inits == 3 ? ncclInternalError : ncclSuccess
#include "../good_tuner.c"
