/* The configuration: WEFT_SIMVERBS names a JSON file or is JSON itself; without it there are two Ethernet devices on two
 * subnets. The README lists every name. */
#include "sim.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

struct config sv_conf;

static const char* const standard =
    "{\"devices\":[{\"name\":\"sim0\",\"pci\":\"0000:81:00.0\",\"gids\":[\"10.101.0.1/24\"]},"
    "{\"name\":\"sim1\",\"pci\":\"0000:82:00.0\",\"gids\":[\"10.102.0.1/24\"]}]}";

/* "10.0.0.1/24", "fd00::1/64", with " v1" behind it for RoCE v1. */
int sv_parse_gid(const char* text, struct gid* g) {
  char addr[64];
  unsigned prefix = 0;
  snprintf(addr, sizeof addr, "%s", text);
  memset(g, 0, sizeof *g);
  g->type = IBV_GID_TYPE_ROCE_V2;
  char* v = strchr(addr, ' ');
  if (v) {
    g->type = !strcmp(v, " v1") ? IBV_GID_TYPE_ROCE_V1 : !strcmp(v, " ib") ? IBV_GID_TYPE_IB : IBV_GID_TYPE_ROCE_V2;
    *v = 0;
  }
  char* slash = strchr(addr, '/');
  if (slash) { prefix = (unsigned)atoi(slash + 1); *slash = 0; }
  struct in_addr a4;
  if (inet_pton(AF_INET, addr, &a4) == 1) {
    g->raw.raw[10] = g->raw.raw[11] = 0xff;
    memcpy(g->raw.raw + 12, &a4, 4);
    g->prefix = 96 + (slash ? prefix : 24);
  } else if (inet_pton(AF_INET6, addr, g->raw.raw) == 1) {
    g->prefix = slash ? prefix : 64;
  } else {
    return EINVAL;
  }
  g->used = 1;
  return g->prefix > 128 ? EINVAL : 0;
}

static void gids(struct json* j, struct devconf* d, struct port* p, int* n) {
  for (int first = 1; sv_json_array(j, &first);) {
    char text[64];
    sv_json_string(j, text, sizeof text);
    if (*n == MAX_GID) { j->error = "too many GIDs"; return; }
    if (!text[0]) p->gids[(*n)++].used = 0; /* a hole in the table */
    else if (sv_parse_gid(text, &p->gids[(*n)++])) j->error = "a GID is an address/prefix";
  }
  (void)d;
}

static void port_names(struct json* j, struct devconf* d, struct port* p, int* n) {
  for (char key[64] = ""; sv_json_object(j, key);) {
    if (!strcmp(key, "gids")) gids(j, d, p, n);
    else if (!strcmp(key, "rate")) p->rate = (uint64_t)(sv_json_number(j) * 1e9);
    else if (!strcmp(key, "burst")) p->burst = (uint64_t)sv_json_number(j);
    else if (!strcmp(key, "delay_us")) p->delay = (uint64_t)(sv_json_number(j) * 1e3);
    else if (!strcmp(key, "down")) p->down = sv_json_number(j) != 0;
    else sv_json_skip(j);
  }
}

static void device(struct json* j, int i) {
  struct devconf* d = &sv_conf.dev[i];
  struct port* p = &sv_conf.port[i * MAX_PORT];
  struct port common = {0};
  char text[64];
  int nports = 0;
  *d = (struct devconf){.link = IBV_LINK_LAYER_ETHERNET, .ports = 1, .speed = 100000, .mtu = 4096, .max_inline = 512,
                        .max_sge = MAX_SGE, .max_qp = MAX_QP / 2, .max_qp_wr = 16384, .max_cqe = 1 << 20, .dmabuf = 1,
                        .down_flushes = 1};
  for (char key[64] = ""; sv_json_object(j, key);) {
    if (!strcmp(key, "name")) sv_json_string(j, d->name, sizeof d->name);
    else if (!strcmp(key, "pci")) sv_json_string(j, d->pci, sizeof d->pci);
    else if (!strcmp(key, "node")) sv_json_string(j, d->node, sizeof d->node);
    else if (!strcmp(key, "netdev")) sv_json_string(j, d->netdev, sizeof d->netdev);
    else if (!strcmp(key, "data_direct")) sv_json_string(j, d->data_direct, sizeof d->data_direct);
    else if (!strcmp(key, "guid")) { sv_json_string(j, text, sizeof text); d->guid = strtoull(text, NULL, 16); }
    else if (!strcmp(key, "link")) {
      sv_json_string(j, text, sizeof text);
      d->link = !strcmp(text, "infiniband") ? IBV_LINK_LAYER_INFINIBAND : IBV_LINK_LAYER_ETHERNET;
    }
    else if (!strcmp(key, "speed")) d->speed = (int)sv_json_number(j);
    else if (!strcmp(key, "mtu")) d->mtu = (int)sv_json_number(j);
    else if (!strcmp(key, "max_inline")) d->max_inline = (int)sv_json_number(j);
    else if (!strcmp(key, "max_sge")) d->max_sge = (int)sv_json_number(j);
    else if (!strcmp(key, "max_qp")) d->max_qp = (int)sv_json_number(j);
    else if (!strcmp(key, "max_qp_wr")) d->max_qp_wr = (int)sv_json_number(j);
    else if (!strcmp(key, "max_cqe")) d->max_cqe = (int)sv_json_number(j);
    else if (!strcmp(key, "dmabuf")) d->dmabuf = sv_json_number(j) != 0;
    else if (!strcmp(key, "mlx5")) d->mlx5 = sv_json_number(j) != 0;
    else if (!strcmp(key, "ooo")) d->ooo = (int)sv_json_number(j);
    else if (!strcmp(key, "down_flushes")) d->down_flushes = sv_json_number(j) != 0;
    else if (!strcmp(key, "ece_vendor")) d->ece_vendor = (uint32_t)sv_json_number(j);
    else if (!strcmp(key, "ece_options")) d->ece_options = (uint32_t)sv_json_number(j);
    else if (!strcmp(key, "rate")) common.rate = (uint64_t)(sv_json_number(j) * 1e9);
    else if (!strcmp(key, "burst")) common.burst = (uint64_t)sv_json_number(j);
    else if (!strcmp(key, "delay_us")) common.delay = (uint64_t)(sv_json_number(j) * 1e3);
    else if (!strcmp(key, "gids")) gids(j, d, &p[0], &d->ngid[0]);
    else if (!strcmp(key, "ports")) {
      for (int first = 1; sv_json_array(j, &first) && nports < MAX_PORT; nports++) {
        port_names(j, d, &p[nports], &d->ngid[nports]);
      }
      d->ports = nports;
    } else sv_json_skip(j);
  }
  if (!d->name[0]) snprintf(d->name, sizeof d->name, "sim%d", i);
  if (d->ports < 1 || d->max_inline > MAX_INLINE || d->max_sge > MAX_SGE) j->error = "ports, max_inline or max_sge out of range";
  if (!d->guid) d->guid = 0x0200c0fffe000000u + (uint64_t)i * 256;
  for (int k = 0; k < d->ports; k++) { /* entry 0 is link-local, as on every device */
    memmove(&p[k].gids[1], &p[k].gids[0], sizeof p[k].gids - sizeof p[k].gids[0]);
    struct gid* g = &p[k].gids[0];
    *g = (struct gid){.used = 1, .prefix = 64, .type = d->link == IBV_LINK_LAYER_INFINIBAND ? IBV_GID_TYPE_IB : IBV_GID_TYPE_ROCE_V2};
    g->raw.raw[0] = 0xfe, g->raw.raw[1] = 0x80;
    uint64_t id = htobe64(d->guid + (uint64_t)k + 1);
    memcpy(g->raw.raw + 8, &id, 8);
    if (d->ngid[k] == MAX_GID) j->error = "too many GIDs";
    else d->ngid[k]++;
    if (!p[k].rate) p[k].rate = common.rate;
    if (!p[k].delay) p[k].delay = common.delay;
    if (!p[k].burst) p[k].burst = common.burst;
    uint64_t least = p[k].rate / (1000000000 / BURST_NS); /* what passes while an engine oversleeps */
    if (!p[k].burst) p[k].burst = least > 262144 ? least : 262144;
  }
}

int sv_config_load(void) {
  static char text[65536];
  const char* env = getenv("WEFT_SIMVERBS");
  snprintf(text, sizeof text, "%s", !env || !*env ? standard : env);
  if (env && *env && text[0] != '{') {
    int fd = open(env, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    int e = errno;
    if (fd >= 0) close(fd);
    if (n < 0) { sv_log("read the configuration %s: %s", env, strerror(e)); return e; }
    text[n] = 0;
  }
  struct json j = {text, NULL};
  const char* node = getenv("WEFT_SIMVERBS_NODE");
  sv_conf = (struct config){.seed = 1, .share = 1, .dir = "/dev/shm"};
  uint64_t hash = 0xcbf29ce484222325u; /* two configurations are two worlds */
  for (const char* c = text; *c; c++) hash = (hash ^ (uint8_t)*c) * 0x100000001b3u;
  snprintf(sv_conf.name, sizeof sv_conf.name, "%016llx", (unsigned long long)hash);
  for (char key[64] = ""; sv_json_object(&j, key);) {
    if (!strcmp(key, "name")) sv_json_string(&j, sv_conf.name, sizeof sv_conf.name);
    else if (!strcmp(key, "dir")) sv_json_string(&j, sv_conf.dir, sizeof sv_conf.dir);
    else if (!strcmp(key, "seed")) sv_conf.seed = (uint64_t)sv_json_number(&j);
    else if (!strcmp(key, "share")) sv_conf.share = sv_json_number(&j) != 0;
    else if (!strcmp(key, "retry7_forever")) sv_conf.retry7_forever = sv_json_number(&j) != 0;
    else if (!strcmp(key, "devices")) {
      for (int first = 1; sv_json_array(&j, &first) && sv_conf.ndev < MAX_DEV; sv_conf.ndev++) device(&j, sv_conf.ndev);
    } else sv_json_skip(&j);
  }
  if (j.error) { sv_log("the configuration %s: %s (unknown or misspelt?)", env ? env : "built in", j.error); return EINVAL; }
  for (int i = 0; i < sv_conf.ndev; i++) {
    struct devconf* d = &sv_conf.dev[i];
    d->visible = !node || !*node || !d->node[0] || !strcmp(node, d->node);
  }
  return 0;
}
