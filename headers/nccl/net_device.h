/* Device side of a network connection: kinds and the handle, which has been the
 * same since version 7. */
#ifndef WEFT_NCCL_NET_DEVICE_H
#define WEFT_NCCL_NET_DEVICE_H

#include <stddef.h>

/* Who takes part in moving the data of a connection. */
typedef enum {
  NCCL_NET_DEVICE_HOST = 0,    /* the host alone */
  NCCL_NET_DEVICE_UNPACK = 1,  /* device code unpacks */
  NCCL_NET_DEVICE_GIN_PROXY = 2,
  NCCL_NET_DEVICE_GIN_GDAKI = 3,
  NCCL_NET_DEVICE_GIN_GPI = 4,
  NCCL_NET_DEVICE_GIN_EFA_GDA = 5
} ncclNetDeviceType;

#define NCCL_NET_DEVICE_INVALID_VERSION 0x0
#define NCCL_NET_MTU_SIZE 4096

/* Version of the unpacking interface. */
#define NCCL_NET_DEVICE_UNPACK_VERSION 0x7

/* What device code needs of a connection; NULL for a host device. */
typedef struct {
  ncclNetDeviceType netDeviceType;
  int netDeviceVersion;
  void* handle;
  size_t size;             /* of what handle points to */
  int needsProxyProgress;  /* the host must call test */
} ncclNetDeviceHandle_v7_t;

typedef ncclNetDeviceHandle_v7_t ncclNetDeviceHandle_v8_t;
typedef ncclNetDeviceHandle_v8_t ncclNetDeviceHandle_v9_t;
typedef ncclNetDeviceHandle_v9_t ncclNetDeviceHandle_v10_t;
typedef ncclNetDeviceHandle_v10_t ncclNetDeviceHandle_v11_t;
typedef ncclNetDeviceHandle_v11_t ncclNetDeviceHandle_v12_t;

#endif
