/* Devices, contexts, ports and GIDs. ibv_device.ibdev_path is a real folder: a device with a PCI address has a
 * `device` link there, to a folder of that name, one without has none, as rxe has none. */
#include "sim.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct vctx* sv_contexts;
static struct vdev devices[MAX_DEV]; /* never freed: programs keep pointers past ibv_free_device_list */

/* All processes of a world write the same: none may see a file that another is just writing. */
static void file(const char* dir, const char* name, const char* text) {
  char path[512], mine[544];
  snprintf(path, sizeof path, "%s/%s", dir, name);
  snprintf(mine, sizeof mine, "%s.%d", path, getpid());
  for (char* s = strchr(path + 1, '/'); s; s = strchr(s + 1, '/')) {
    *s = 0;
    mkdir(path, 0700);
    *s = '/';
  }
  FILE* f = fopen(mine, "we");
  if (!f) return;
  fprintf(f, "%s\n", text);
  if (fclose(f) || rename(mine, path)) sv_log("write %s: %s", path, strerror(errno));
}

static void ibdev_path(const struct devconf* d, char* out, size_t size) {
  snprintf(out, size, "%.150s/sys/class/infiniband/%s%s%s", sv_conf.dir, d->node, d->node[0] ? "." : "", d->name);
}

static void folder_of(const struct devconf* d) {
  char dir[256], folder[512], link[512];
  ibdev_path(d, dir, sizeof dir);
  file(dir, "node_type", "1: CA");
  if (d->data_direct[0]) {
    snprintf(folder, sizeof folder, "%s/sys%s", sv_conf.dir, d->data_direct);
    file(folder, "class", "0x020700");
  }
  if (!d->pci[0]) return;
  if (d->pci[0] == '/') snprintf(folder, sizeof folder, "%s%s", sv_conf.dir, d->pci);
  else snprintf(folder, sizeof folder, "%s/sys/devices/pci%.7s/%s", sv_conf.dir, d->pci, d->pci);
  file(folder, "class", "0x020700");
  file(folder, "vendor", "0x15b3");
  file(folder, "device", "0x1021");
  file(folder, "numa_node", "-1");
  file(folder, "max_link_speed", "32.0 GT/s PCIe");
  file(folder, "max_link_width", "16");
  snprintf(link, sizeof link, "%s/device", dir);
  if (symlink(folder, link) && errno != EEXIST) sv_log("link %s: %s", link, strerror(errno));
}

/* Once a process, when it has read the configuration: other threads' contexts use what is here. */
void sv_device_setup(int i) {
  struct vdev* d = &devices[i];
  *d = (struct vdev){.conf = &sv_conf.dev[i], .index = i, .qps = d->qps,
    .dev = {.node_type = IBV_NODE_CA, .transport_type = IBV_TRANSPORT_IB}};
  snprintf(d->dev.name, sizeof d->dev.name, "%s", d->conf->name);
  snprintf(d->dev.dev_name, sizeof d->dev.dev_name, "uverbs%d", i);
  snprintf(d->dev.dev_path, sizeof d->dev.dev_path, "%s/sys/class/infiniband_verbs/uverbs%d", sv_conf.dir, i);
  ibdev_path(d->conf, d->dev.ibdev_path, sizeof d->dev.ibdev_path);
  folder_of(d->conf);
}

PUBLIC struct ibv_device** ibv_get_device_list(int* num) {
  int n = 0, down = sv_attach(), e = sv_fail(FN_get_device_list);
  struct ibv_device** list = sv_new(down ? down : e, (MAX_DEV + 1) * sizeof *list);
  for (int i = 0; list && i < sv_conf.ndev; i++) if (sv_conf.dev[i].visible) list[n++] = &devices[i].dev;
  if (num) *num = n;
  return list;
}

PUBLIC void ibv_free_device_list(struct ibv_device** list) { free(list); }
PUBLIC const char* ibv_get_device_name(struct ibv_device* d) { return d->name; }

static int query_port(struct ibv_context* ctx, uint8_t n, struct ibv_port_attr* out, size_t size) {
  MAY_FAIL(query_port);
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
      .gid_tbl_len = MAX_GID, .port_cap_flags = IBV_PORT_CM_SUP, .max_msg_sz = 1u << 30,
      .pkey_tbl_len = (uint16_t)c->npkey, .max_vl_num = 1,
      .active_width = speeds[k].width, .active_speed = speeds[k].speed, .active_speed_ex = speeds[k].ex,
      .phys_state = get(p->down) ? 3 : 5, .subnet_timeout = 18,
      .link_layer = c->ib ? IBV_LINK_LAYER_INFINIBAND : IBV_LINK_LAYER_ETHERNET};
  if (c->ib) {
    a.lid = (uint16_t)(d->index * MAX_PORT + n);
    a.sm_lid = 1;
  } else {
    a.flags = IBV_QPF_GRH_REQUIRED;
    a.port_cap_flags |= IBV_PORT_IP_BASED_GIDS;
  }
  memcpy(out, &a, size < sizeof a ? size : sizeof a);
  return 0;
}

/* The struct of this symbol ends at flags. */
PUBLIC int ibv_query_port(struct ibv_context* ctx, uint8_t n, struct _compat_ibv_port_attr* out) {
  return query_port(ctx, n, (struct ibv_port_attr*)out, offsetof(struct ibv_port_attr, flags) + 1);
}

PUBLIC int ibv_query_port_speed(struct ibv_context* ctx, uint32_t n, uint64_t* speed) {
  MAY_FAIL(query_port_speed);
  struct devconf* c = ((struct vdev*)ctx->device)->conf;
  if (n < 1 || n > (uint32_t)c->ports) return EINVAL;
  *speed = (uint64_t)c->speed / 100;
  return 0;
}

PUBLIC int ibv_query_device(struct ibv_context* ctx, struct ibv_device_attr* a) {
  MAY_FAIL(query_device);
  struct devconf* c = ((struct vdev*)ctx->device)->conf;
  *a = (struct ibv_device_attr){
      .node_guid = htobe64(c->guid), .sys_image_guid = htobe64(c->guid), .max_mr_size = ~(uint64_t)0,
        .page_size_cap = 4096,
      .vendor_id = c->mlx5 ? 0x02c9 : 0xffffff, .vendor_part_id = c->mlx5 ? 4129 : 0, .max_qp = c->max_qp,
      .max_qp_wr = c->max_qp_wr, .max_sge = c->max_sge, .max_sge_rd = c->max_sge, .max_cq = MAX_CQ,
        .max_cqe = c->max_cqe,
      .max_mr = MAX_MR, .max_pd = 1 << 20, .max_qp_rd_atom = 128, .max_res_rd_atom = 1 << 20,
        .max_qp_init_rd_atom = 128,
      .atomic_cap = IBV_ATOMIC_HCA, .max_ah = 1 << 16, .max_pkeys = (uint16_t)c->npkey, .local_ca_ack_delay = 15,
        .phys_port_cnt = (uint8_t)c->ports,
      .device_cap_flags = IBV_DEVICE_RC_RNR_NAK_GEN | IBV_DEVICE_PORT_ACTIVE_EVENT | IBV_DEVICE_SYS_IMAGE_GUID};
  snprintf(a->fw_ver, sizeof a->fw_ver, "1.0.simverbs");
  return 0;
}

PUBLIC struct ibv_context* ibv_open_device(struct ibv_device* device) {
  int fds[2];
  struct vctx* c = sv_new(sv_fail(FN_open_device), sizeof *c);
  if (!c || sv_pipe(fds)) { free(c); return NULL; }
  c->dev = (struct vdev*)device;
  c->event_fd = fds[1];
  c->v = (struct verbs_context){.sz = sizeof c->v, .query_port = query_port,
      .context = {.device = device, .async_fd = fds[0], .cmd_fd = -1, .num_comp_vectors = 1,
        .abi_compat = WEFT_VERBS_ABI_IS_EXTENDED,
          .ops = {.poll_cq = sv_poll_cq, .req_notify_cq = sv_req_notify_cq, .post_send = sv_post_send,
            .post_recv = sv_post_recv}}};
  sv_lock(&sv_objects_lock);
  c->next = sv_contexts;
  sv_contexts = c;
  sv_unlock(&sv_objects_lock);
  return &c->v.context;
}

PUBLIC int ibv_close_device(struct ibv_context* ctx) {
  MAY_FAIL(close_device);
  struct vctx* c = sv_ctx(ctx);
  sv_lock(&sv_objects_lock);
  struct vctx** p = &sv_contexts;
  while (*p && *p != c) p = &(*p)->next;
  if (*p) *p = c->next;
  sv_unlock(&sv_objects_lock);
  close(c->v.context.async_fd);
  close(c->event_fd);
  free(c);
  return 0;
}

/* 0, ENODATA for an empty entry, or EINVAL. */
PUBLIC int _ibv_query_gid_ex(struct ibv_context* ctx, uint32_t n, uint32_t i, struct ibv_gid_entry* out, uint32_t flags,
                             size_t size) {
  MAY_FAIL(query_gid_ex);
  struct vdev* d = (struct vdev*)ctx->device;
  if (n < 1 || n > (uint32_t)d->conf->ports || i >= MAX_GID || flags || size != sizeof *out) return EINVAL;
  struct gid* g = &sv_arena->ports[(uint32_t)d->index * MAX_PORT + n - 1].gids[i];
  if (!get(g->used)) return ENODATA;
  *out = (struct ibv_gid_entry){.gid = g->raw, .gid_index = i, .port_num = n, .gid_type = g->type};
  return 0;
}

PUBLIC ssize_t _ibv_query_gid_table(struct ibv_context* ctx, struct ibv_gid_entry* out, size_t max, uint32_t flags,
  size_t size) {
  size_t n = 0;
  for (uint32_t i = 0; i < (uint32_t)((struct vdev*)ctx->device)->conf->ports * MAX_GID; i++) {
    struct ibv_gid_entry e;
    int rc = _ibv_query_gid_ex(ctx, i / MAX_GID + 1, i % MAX_GID, &e, flags, size);
    if (rc == ENODATA) continue;
    if (rc || n == max) return rc ? -rc : -EINVAL;
    out[n++] = e;
  }
  return (ssize_t)n;
}

PUBLIC int ibv_query_gid(struct ibv_context* ctx, uint8_t n, int i, union ibv_gid* gid) {
  struct ibv_gid_entry e = {0};
  int rc = sv_fail(FN_query_gid);
  if (!rc) rc = i < 0 ? EINVAL : _ibv_query_gid_ex(ctx, n, (uint32_t)i, &e, 0, sizeof e);
  if (rc && rc != ENODATA) { errno = rc; return -1; }
  *gid = e.gid;
  return 0;
}

PUBLIC int ibv_query_pkey(struct ibv_context* ctx, uint8_t n, int i, uint16_t* pkey) {
  MAY_FAIL_WITH(query_pkey, -1);
  struct devconf* c = ((struct vdev*)ctx->device)->conf;
  if (n < 1 || n > c->ports || i < 0 || i >= c->npkey) { errno = EINVAL; return -1; }
  *pkey = htobe16(c->pkeys[i]);
  return 0;
}

PUBLIC int ibv_fork_init(void) { sv_attach(); return sv_fail(FN_fork_init); } /* attached, it knows its faults */
