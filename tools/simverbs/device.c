/* Devices, contexts, ports and GIDs. */
#include "sim.h"

#include <fcntl.h>
#include <net/if.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

struct vctx* sv_contexts;
uint32_t sv_contexts_lock;
static struct vdev devices[MAX_DEV]; /* never freed: programs keep pointers past ibv_free_device_list */

static int refuse(enum sv_function f) {
  int e = sv_fail(f);
  if (e) errno = e;
  return e;
}

PUBLIC struct ibv_device** ibv_get_device_list(int* num) {
  if (num) *num = 0;
  int e = sv_fail(FN_get_device_list);
  if (!e) e = sv_attach();
  if (e) { errno = e; return NULL; }
  struct ibv_device** list = calloc(MAX_DEV + 1, sizeof *list);
  if (!list) return NULL;
  int n = 0;
  for (int i = 0; i < sv_conf.ndev; i++) {
    struct devconf* c = &sv_conf.dev[i];
    if (!c->visible) continue;
    struct vdev* d = &devices[i];
    d->conf = c;
    d->index = i;
    d->dev.node_type = IBV_NODE_CA;
    d->dev.transport_type = IBV_TRANSPORT_IB;
    snprintf(d->dev.name, sizeof d->dev.name, "%s", c->name);
    snprintf(d->dev.dev_name, sizeof d->dev.dev_name, "uverbs%d", i);
    snprintf(d->dev.dev_path, sizeof d->dev.dev_path, "%s/sys/class/infiniband_verbs/uverbs%d", sv_conf.dir, i);
    snprintf(d->dev.ibdev_path, sizeof d->dev.ibdev_path, "%.150s/sys/class/infiniband/%s%s%s", sv_conf.dir, c->node,
             c->node[0] ? "." : "", c->name);
    list[n++] = &d->dev;
  }
  if (num) *num = n;
  return list;
}

PUBLIC void ibv_free_device_list(struct ibv_device** list) { free(list); }
PUBLIC const char* ibv_get_device_name(struct ibv_device* d) { return d->name; }
PUBLIC uint64_t ibv_get_device_guid(struct ibv_device* d) { return htobe64(((struct vdev*)d)->conf->guid); }
PUBLIC int ibv_get_device_index(struct ibv_device* d) { return ((struct vdev*)d)->index; }

static int query_port(struct ibv_context* ctx, uint8_t n, struct ibv_port_attr* out, size_t size) {
  int e = sv_fail(FN_query_port);
  if (e) return e;
  struct vdev* d = (struct vdev*)ctx->device;
  struct devconf* c = d->conf;
  if (n < 1 || n > c->ports) return EINVAL;
  struct port* p = &sv_arena->ports[d->index * MAX_PORT + n - 1];
  static const struct { int mbps; uint8_t width, speed; uint32_t ex; } speeds[] = {
      {2500, 1, 1, 0}, {10000, 2, 1, 0}, {25000, 1, 32, 0}, {40000, 2, 4, 0}, {56000, 2, 16, 0}, {100000, 2, 32, 0},
      {200000, 2, 64, 0}, {400000, 2, 128, 0}, {800000, 2, 128, 0x100}};
  int k = 0;
  while (k < 8 && speeds[k].mbps < c->speed) k++;
  int mtu = IBV_MTU_256;
  while (mtu < IBV_MTU_4096 && (256 << mtu) <= c->mtu) mtu++;
  struct ibv_port_attr a = {
      .state = get(p->down) ? IBV_PORT_DOWN : IBV_PORT_ACTIVE, .max_mtu = IBV_MTU_4096, .active_mtu = (enum ibv_mtu)mtu,
      .gid_tbl_len = MAX_GID, .port_cap_flags = IBV_PORT_CM_SUP, .max_msg_sz = 1u << 30, .pkey_tbl_len = 1, .max_vl_num = 1,
      .active_width = speeds[k].width, .active_speed = speeds[k].speed, .active_speed_ex = speeds[k].ex,
      .phys_state = get(p->down) ? 3 : 5, .link_layer = (uint8_t)c->link, .subnet_timeout = 18};
  if (c->link == IBV_LINK_LAYER_INFINIBAND) a.lid = (uint16_t)(d->index * MAX_PORT + n), a.sm_lid = 1;
  else a.flags = IBV_QPF_GRH_REQUIRED, a.port_cap_flags |= IBV_PORT_IP_BASED_GIDS;
  memcpy(out, &a, size < sizeof a ? size : sizeof a);
  return 0;
}

/* The struct of this symbol ends at flags. */
PUBLIC int ibv_query_port(struct ibv_context* ctx, uint8_t n, struct _compat_ibv_port_attr* out) {
  return query_port(ctx, n, (struct ibv_port_attr*)out, offsetof(struct ibv_port_attr, flags) + 1);
}

PUBLIC int ibv_query_port_speed(struct ibv_context* ctx, uint32_t n, uint64_t* speed) {
  int e = sv_fail(FN_query_port_speed);
  if (e) return e;
  struct devconf* c = ((struct vdev*)ctx->device)->conf;
  if (n < 1 || n > (uint32_t)c->ports) return EINVAL;
  *speed = (uint64_t)c->speed / 100;
  return 0;
}

static int query_device_op(struct ibv_context* ctx, struct ibv_device_attr* a) {
  struct devconf* c = ((struct vdev*)ctx->device)->conf;
  *a = (struct ibv_device_attr){
      .node_guid = htobe64(c->guid), .sys_image_guid = htobe64(c->guid), .max_mr_size = ~(uint64_t)0, .page_size_cap = 4096,
      .vendor_id = c->mlx5 ? 0x02c9 : 0xffffff, .vendor_part_id = c->mlx5 ? 4129 : 0, .max_qp = c->max_qp,
      .max_qp_wr = c->max_qp_wr, .max_sge = c->max_sge, .max_sge_rd = c->max_sge, .max_cq = MAX_CQ, .max_cqe = c->max_cqe,
      .max_mr = MAX_MR, .max_pd = 1 << 20, .max_qp_rd_atom = 128, .max_res_rd_atom = 1 << 20, .max_qp_init_rd_atom = 128,
      .atomic_cap = IBV_ATOMIC_HCA, .max_ah = 1 << 16, .max_srq = 4096, .max_srq_wr = c->max_qp_wr, .max_srq_sge = c->max_sge,
      .max_pkeys = 1, .local_ca_ack_delay = 15, .phys_port_cnt = (uint8_t)c->ports,
      .device_cap_flags = IBV_DEVICE_RC_RNR_NAK_GEN | IBV_DEVICE_PORT_ACTIVE_EVENT | IBV_DEVICE_SYS_IMAGE_GUID};
  snprintf(a->fw_ver, sizeof a->fw_ver, "1.0.simverbs");
  return 0;
}

PUBLIC int ibv_query_device(struct ibv_context* ctx, struct ibv_device_attr* a) {
  int e = sv_fail(FN_query_device);
  return e ? e : query_device_op(ctx, a);
}

static int query_device_ex(struct ibv_context* ctx, const struct ibv_query_device_ex_input* in, struct ibv_device_attr_ex* a,
                           size_t size) {
  if (size < sizeof(struct ibv_device_attr)) return EINVAL;
  int e = sv_fail(FN_query_device);
  if (e) return e;
  memset(a, 0, size);
  return query_device_op(ctx, (struct ibv_device_attr*)a);
}

PUBLIC struct ibv_context* ibv_open_device(struct ibv_device* device) {
  if (refuse(FN_open_device)) return NULL;
  struct vctx* c = calloc(1, sizeof *c);
  int fds[2];
  if (!c) return NULL;
  if (pipe2(fds, O_CLOEXEC)) { free(c); return NULL; }
  fcntl(fds[1], F_SETFL, O_NONBLOCK);
  c->dev = (struct vdev*)device;
  c->event_fd = fds[1];
  struct ibv_context* ctx = &c->v.context;
  ctx->device = device;
  ctx->async_fd = fds[0];
  ctx->cmd_fd = -1;
  ctx->num_comp_vectors = 1;
  ctx->abi_compat = WEFT_VERBS_ABI_IS_EXTENDED;
  pthread_mutex_init(&ctx->mutex, NULL);
  c->v.sz = sizeof c->v;
  c->v.query_port = query_port;
  c->v.query_device_ex = query_device_ex;
  ctx->ops.poll_cq = sv_poll_cq;
  ctx->ops.req_notify_cq = sv_req_notify_cq;
  ctx->ops.post_send = sv_post_send;
  ctx->ops.post_recv = sv_post_recv;
  ctx->ops.post_srq_recv = sv_post_srq_recv;
  int e = sv_engine_start();
  if (e) {
    close(fds[0]), close(fds[1]), free(c);
    errno = e;
    return NULL;
  }
  sv_lock(&sv_contexts_lock);
  c->next = sv_contexts;
  sv_contexts = c;
  sv_unlock(&sv_contexts_lock);
  return ctx;
}

PUBLIC int ibv_close_device(struct ibv_context* ctx) {
  int e = sv_fail(FN_close_device);
  if (e) return e;
  struct vctx* c = sv_ctx(ctx);
  sv_lock(&sv_contexts_lock);
  for (struct vctx** p = &sv_contexts; *p; p = &(*p)->next) {
    if (*p == c) { *p = c->next; break; }
  }
  sv_unlock(&sv_contexts_lock);
  close(c->v.context.async_fd), close(c->event_fd);
  pthread_mutex_destroy(&c->v.context.mutex);
  free(c);
  return 0;
}

/* 0, ENODATA for an empty entry, or EINVAL. */
PUBLIC int _ibv_query_gid_ex(struct ibv_context* ctx, uint32_t n, uint32_t i, struct ibv_gid_entry* out, uint32_t flags,
                             size_t size) {
  int e = sv_fail(FN_query_gid_ex);
  if (e) return e;
  struct vdev* d = (struct vdev*)ctx->device;
  if (n < 1 || n > (uint32_t)d->conf->ports || i >= MAX_GID || flags || size != sizeof *out) return EINVAL;
  struct gid* g = &sv_arena->ports[(uint32_t)d->index * MAX_PORT + n - 1].gids[i];
  if (!get(g->used)) return ENODATA;
  *out = (struct ibv_gid_entry){.gid = g->raw, .gid_index = i, .port_num = n, .gid_type = g->type};
  if (d->conf->netdev[0]) out->ndev_ifindex = if_nametoindex(d->conf->netdev);
  return 0;
}

PUBLIC ssize_t _ibv_query_gid_table(struct ibv_context* ctx, struct ibv_gid_entry* out, size_t max, uint32_t flags, size_t size) {
  size_t n = 0;
  for (uint32_t p = 1; p <= (uint32_t)((struct vdev*)ctx->device)->conf->ports; p++) {
    for (uint32_t i = 0; i < MAX_GID; i++) {
      struct ibv_gid_entry e;
      int rc = _ibv_query_gid_ex(ctx, p, i, &e, flags, size);
      if (rc == ENODATA) continue;
      if (rc || n == max) return rc ? -rc : -EINVAL;
      out[n++] = e;
    }
  }
  return (ssize_t)n;
}

PUBLIC int ibv_query_gid(struct ibv_context* ctx, uint8_t n, int i, union ibv_gid* gid) {
  struct ibv_gid_entry e;
  int rc = sv_fail(FN_query_gid);
  if (!rc) rc = i < 0 ? EINVAL : _ibv_query_gid_ex(ctx, n, (uint32_t)i, &e, 0, sizeof e);
  if (rc == ENODATA) memset(gid, 0, sizeof *gid);
  else if (rc) { errno = rc; return -1; }
  else *gid = e.gid;
  return 0;
}

PUBLIC int ibv_query_pkey(struct ibv_context* ctx, uint8_t n, int i, uint16_t* pkey) {
  int e = sv_fail(FN_query_pkey);
  if (!e && (n < 1 || n > ((struct vdev*)ctx->device)->conf->ports || i)) e = EINVAL;
  if (e) { errno = e; return -1; }
  *pkey = 0xffff;
  return 0;
}

PUBLIC int ibv_get_pkey_index(struct ibv_context* ctx, uint8_t n, uint16_t pkey) { return pkey == 0xffff ? 0 : -1; }

PUBLIC int ibv_fork_init(void) { return sv_fail(FN_fork_init); }
