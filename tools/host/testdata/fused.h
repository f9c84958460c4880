/* makeVDevice on top of the table v12 of good.c, for plugins that break a rule about it. */
#define TABLES 1 << 12
#include "good.c"

enum { PHYSICAL = 2, FUSED = 8 };
static ncclNetVDeviceProps_v12_t fused[FUSED];
static char fused_name[FUSED][16];
static int fusions;

static int fused_devices(int *n) { return *n = PHYSICAL + fusions, OK; }
static int fused_real(int dev) { return dev >= PHYSICAL && dev < PHYSICAL + fusions ? 0 : dev; }
static int fused_listen(void *ctx, int dev, void *handle, void **out) { return good_listen(ctx, fused_real(dev), handle, out); }
static int fused_connect(void *ctx, int dev, void *handle, void **out, int abi) { return good_connect(ctx, fused_real(dev), handle, out, abi); }

static R fused_props(int dev, ncclNetProperties_v12_t *p) {
  R rc = props12(fused_real(dev), p);
  if (rc || dev < PHYSICAL) return rc;
  p->name = fused_name[dev - PHYSICAL], p->vProps = fused[dev - PHYSICAL];
  return rc;
}

/* The list is legal but for what a plugin leaves out. */
static int fused_legal(const ncclNetVDeviceProps_v12_t *p, int twice) {
  if (p->ndevs < 1 || p->ndevs > 8) return 0;
  for (int i = 0; i < p->ndevs; i++) {
    if (p->devs[i] < 0 || p->devs[i] >= PHYSICAL) return 0;
    for (int j = 0; j < i && !twice; j++)
      if (p->devs[i] == p->devs[j]) return 0;
  }
  return 1;
}

static R fused_make(int *d, ncclNetVDeviceProps_v12_t *p) {
  if (!fused_legal(p, 0) || fusions == FUSED) FAIL(ncclInternalError, "makeVDevice: not these");
  snprintf(fused_name[fusions], sizeof *fused_name, "good+%d", fusions);
  fused[fusions] = *p, *d = PHYSICAL + fusions++;
  return ncclSuccess;
}

__attribute__((constructor)) static void fuses(void) {
  core.devices = fused_devices, core.listen = fused_listen, core.connect = fused_connect;
  ncclNetPlugin_v12.getProperties = fused_props, ncclNetPlugin_v12.makeVDevice = fused_make;
}
