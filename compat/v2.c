/* What v2 asks one by one and getProperties tells at once since v3. */
#include <stdlib.h>
#include <string.h>

#include "compat.h"
#include "zz_calls.h"

int weft_v2_pci_path(int table, int dev, char** path) {
  (void)table;
  *path = NULL;
  ncclNetProperties_cur_t props;
  memset(&props, 0, sizeof props);
  int rc = weft_call_net_getProperties(dev, &props);
  if (rc || !props.pciPath) return rc; /* virtual interfaces have none */
  *path = strdup(props.pciPath);       /* the caller frees it */
  return *path ? ncclSuccess : ncclSystemError;
}

int weft_v2_ptr_support(int table, int dev, int* supportedTypes) {
  (void)table;
  *supportedTypes = 0;
  ncclNetProperties_cur_t props;
  memset(&props, 0, sizeof props);
  int rc = weft_call_net_getProperties(dev, &props);
  if (!rc) *supportedTypes = props.ptrSupport & (NCCL_PTR_HOST | NCCL_PTR_CUDA);
  return rc;
}
