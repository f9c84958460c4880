/* conform [--ends DEVICE:GIDINDEX,DEVICE:GIDINDEX] */
#include "conform.h"

#include <string.h>

int main(int argc, char** argv) {
  const char *spec = NULL, *child = NULL;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (!strcmp(argv[i], "--ends")) spec = argv[i + 1];
    else if (!strcmp(argv[i], "--child")) child = argv[i + 1];
  }
  if (find_ends(spec)) {
    fprintf(stderr, "conform: no device with an active port and a routable GID\n");
    return 2;
  }
  if (child) return child_process(spec, child);
  test_data();
  test_errors();
  test_states();
  test_queues();
  test_faults();
  test_processes(argv[0], spec);
  return failures() != 0;
}
