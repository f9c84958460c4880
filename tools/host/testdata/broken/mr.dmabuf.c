/* mr.dmabuf: a DMA-BUF is looked at when it is used, by the number that its descriptor had. */
#define TABLES 1 << 12
#include "../good.c"

#include <sys/stat.h>

static int fd_of = -1;
static ino_t file_of;

static int bad_props(int dev, struct props *p) { int rc = good_props(dev, p); return p->ptr = 5, rc; }

static R bad_reg(void *comm, void *data, size_t size, int type, uint64_t offset, int fd, void **mh) {
  struct stat st;
  (void)offset, (void)type;
  if (fstat(fd, &st)) FAIL(ncclSystemError, "regMrDmaBuf: no descriptor");
  fd_of = fd, file_of = st.st_ino;
  return core.regmr(comm, data, size, NCCL_PTR_HOST, mh);
}

static int bad_send(void *comm, void *data, size_t size, int tag, void *mh, void *ph, void **req) {
  struct stat st;
  if (fd_of >= 0 && (fstat(fd_of, &st) || st.st_ino != file_of)) FAIL(SYSTEM, "isend: another file");
  return good_isend(comm, data, size, tag, mh, ph, req);
}

__attribute__((constructor)) static void spoil(void) { core.props = bad_props, core.isend = bad_send, ncclNetPlugin_v12.regMrDmaBuf = bad_reg; }
