/* The configuration: WEFT_SIMVERBS names a JSON file or is JSON itself; without it there are two Ethernet devices on
 * two subnets. The README lists every name. The text is walked once; of what \ may stand for, only \" \\ and \/ are
 * known. */
#include "sim.h"

#include <arpa/inet.h>
#include <string.h>

struct config sv_conf;

static const char* const standard =
    "{\"devices\":[{\"name\":\"sim0\",\"pci\":\"0000:81:00.0\",\"gids\":[\"10.101.0.1/24\"]},"
    "{\"name\":\"sim1\",\"pci\":\"0000:82:00.0\",\"gids\":[\"10.102.0.1/24\"]}]}";

/* ---- JSON ---- */

static const char *at, *error; /* at its end once there was an error */

static void complain(const char* what) {
  if (!error) error = what;
  at += strlen(at);
}

static int eat(char c) {
  at += strspn(at, " \t\r\n");
  if (*at != c) return 0;
  at++;
  return 1;
}

static void expect(char c, const char* what) {
  if (!eat(c)) complain(what);
}

static void string(char* out, size_t size) {
  size_t n = 0;
  for (expect('"', "a string is expected"); *at && *at != '"'; at++) {
    if (*at == '\\' && at[1]) at++;
    if (n + 1 == size) complain("a string is too long");
    else out[n++] = *at;
    if (error) break;
  }
  out[n] = 0;
  expect('"', "a string does not end");
}

static double number(void) {
  at += strspn(at, " \t\r\n");
  int yes = !strncmp(at, "true", 4), no = !strncmp(at, "false", 5);
  char* end = (char*)(uintptr_t)at + (yes ? 4 : 5);
  double v = yes || no ? yes : strtod(at, &end);
  if (end == at) complain("a number, true or false is expected");
  else at = end;
  return v;
}

/* 1: at the n-th element of a list, or past the next key of an object; 0: at its end. */
static int element(int n) {
  if (!n) expect('[', "a list is expected");
  if (eat(']')) return 0;
  if (n) expect(',', "',' or ']' is expected");
  return !error;
}

static int member(int n, char key[64]) {
  if (!n) expect('{', "an object is expected");
  if (eat('}')) return 0;
  if (n) expect(',', "',' or '}' is expected");
  string(key, 64);
  expect(':', "':' is expected");
  return !error;
}

/* A name and where its value goes: text without a scale, else a number times scale, in 4 or 8 bytes. */
struct field { const char* name; size_t at, size; double scale; };
#define TEXT(s, m) {#m, offsetof(struct s, m), sizeof(((struct s*)0)->m), 0}
#define NUMBER(s, m) {#m, offsetof(struct s, m), sizeof(((struct s*)0)->m), 1}
static const struct field world_fields[] = {
    TEXT(config, name), TEXT(config, dir), NUMBER(config, seed), NUMBER(config, share), NUMBER(config, retry7_forever),
      {0}};
static const struct field device_fields[] = {
    TEXT(devconf, name), TEXT(devconf, pci), TEXT(devconf, node), TEXT(devconf, data_direct), TEXT(devconf, link),
    NUMBER(devconf, speed), NUMBER(devconf, mtu), NUMBER(devconf, max_inline), NUMBER(devconf, max_sge),
      NUMBER(devconf, max_qp),
    NUMBER(devconf, max_qp_wr), NUMBER(devconf, max_cqe), NUMBER(devconf, dmabuf), NUMBER(devconf, mlx5),
      NUMBER(devconf, ooo),
    NUMBER(devconf, down_fails), NUMBER(devconf, ece_vendor), NUMBER(devconf, ece_options), {0}};
static const struct field port_fields[] = {
    {"rate", offsetof(struct port, rate), 8, 1e9}, {"delay_us", offsetof(struct port, delay), 8, 1e3},
      NUMBER(port, down), {0}};

static int known(const char* key, const struct field* f, void* object) {
  while (f->name && strcmp(f->name, key)) f++;
  if (!f->name) return 0;
  char* to = (char*)object + f->at;
  if (f->scale) memcpy(to, &(int64_t){(int64_t)(number() * f->scale)}, f->size); /* little-endian */
  else string(to, f->size);
  return 1;
}

/* ---- What it says ---- */

/* "10.0.0.1/24", "fd00::1/64", with " v1" behind it for RoCE v1. */
int sv_parse_gid(const char* text, struct gid* g) {
  char addr[64];
  snprintf(addr, sizeof addr, "%s", text);
  char *kind = strchr(addr, ' '), *slash = strchr(addr, '/');
  unsigned bits = slash ? (unsigned)atoi(slash + 1) : 0;
  if (kind) *kind = 0;
  if (slash) *slash = 0;
  *g = (struct gid){.used = 1, .type = kind && !strcmp(kind + 1, "v1") ? IBV_GID_TYPE_ROCE_V1 : IBV_GID_TYPE_ROCE_V2};
  if (inet_pton(AF_INET, addr, g->raw.raw + 12) == 1) {
    g->raw.raw[10] = g->raw.raw[11] = 0xff;
    g->prefix = 96 + (slash ? bits : 24);
  } else if (inet_pton(AF_INET6, addr, g->raw.raw) == 1) {
    g->prefix = slash ? bits : 64;
  } else {
    return EINVAL;
  }
  return g->prefix > 128 ? EINVAL : 0;
}

/* Entry 0 is link-local, as on every device; it comes last, when the device is known. */
static void gids(struct port* p) {
  char text[64];
  for (int n = 0; element(n); n++) {
    string(text, sizeof text);
    if (n + 1 == MAX_GID) complain("too many GIDs");
    else if (text[0] && sv_parse_gid(text, &p->gids[n + 1])) complain("a GID is an address/prefix"); /* "": a hole */
  }
}

static void pkeys(struct devconf* d) {
  for (d->npkey = 0; element(d->npkey) && d->npkey < MAX_PKEY; d->npkey++) d->pkeys[d->npkey] = (uint16_t)number();
}

static void port(struct port* p) {
  char key[64];
  for (int n = 0; member(n, key); n++) {
    if (!strcmp(key, "gids")) gids(p);
    else if (!known(key, port_fields, p)) complain("an unknown name");
  }
}

static void device(int i) {
  struct devconf* d = &sv_conf.dev[i];
  struct port *p = &sv_conf.port[i * MAX_PORT], common = {0};
  char key[64];
  *d = (struct devconf){.ports = 1, .speed = 100000, .mtu = 4096, .max_inline = 512, .max_sge = MAX_SGE,
    .max_qp = MAX_QP / 2,
                        .max_qp_wr = 16384, .max_cqe = 1 << 20, .dmabuf = 1, .down_fails = 1, .npkey = 1,
                          .pkeys = {0xffff}};
  snprintf(d->name, sizeof d->name, "sim%d", i);
  for (int n = 0; member(n, key); n++) {
    if (!strcmp(key, "gids")) gids(p);
    else if (!strcmp(key, "pkeys")) pkeys(d);
    else if (!strcmp(key, "ports"))
      for (d->ports = 0; element(d->ports) && d->ports < MAX_PORT; d->ports++) port(&p[d->ports]);
    else if (!known(key, device_fields, d) && !known(key, port_fields, &common)) complain("an unknown name");
  }
  if (d->ports < 1 || d->max_inline > MAX_INLINE || d->max_sge > MAX_SGE)
    complain("ports, max_inline or max_sge out of range");
  d->ib = !strcmp(d->link, "infiniband");
  d->guid = 0x0200c0fffe000000u + (uint64_t)i * 256;
  for (int k = 0; k < d->ports; k++, p++) {
    uint64_t id = htobe64(d->guid + (uint64_t)k + 1);
    p->gids[0] = (struct gid){.raw.raw = {0xfe, 0x80}, .used = 1, .prefix = 64,
      .type = d->ib ? IBV_GID_TYPE_IB : IBV_GID_TYPE_ROCE_V2};
    memcpy(p->gids[0].raw.raw + 8, &id, 8);
    if (!p->rate[0]) p->rate[0] = common.rate[0];
    p->rate[1] = p->rate[0];
    if (!p->delay) p->delay = common.delay;
  }
}

/* "10.1.0.0/16 10.2.0.0/16": routers join the two. */
static void route(struct gid ends[2]) {
  char text[128];
  string(text, sizeof text);
  char* second = strchr(text, ' ');
  if (second) *second++ = 0;
  if (!second || sv_parse_gid(text, &ends[0]) || sv_parse_gid(second, &ends[1]))
    complain("a route is two times address/prefix");
}

int sv_config_load(void) {
  static char text[65536];
  const char *env = getenv("WEFT_SIMVERBS"), *node = getenv("WEFT_SIMVERBS_NODE");
  char key[64];
  snprintf(text, sizeof text, "%s", !env || !*env ? standard : env);
  if (text[0] != '{') {
    FILE* f = fopen(env, "re");
    if (!f) { int e = errno; sv_log("read the configuration %s: %s", env, strerror(e)); return e; }
    text[fread(text, 1, sizeof text - 1, f)] = 0;
    fclose(f);
  }
  sv_conf = (struct config){.seed = 1, .share = 1, .dir = "/dev/shm"};
  uint64_t hash = 0xcbf29ce484222325u; /* two configurations are two worlds */
  for (const char* c = text; *c; c++) hash = (hash ^ (uint8_t)*c) * 0x100000001b3u;
  snprintf(sv_conf.name, sizeof sv_conf.name, "%016llx", (unsigned long long)hash);
  at = text;
  error = NULL;
  for (int n = 0; member(n, key); n++) {
    if (!strcmp(key, "devices"))
      for (; element(sv_conf.ndev) && sv_conf.ndev < MAX_DEV; sv_conf.ndev++) device(sv_conf.ndev);
    else if (!strcmp(key, "routes"))
      for (; element(sv_conf.nroute) && sv_conf.nroute < MAX_ROUTE; sv_conf.nroute++)
        route(sv_conf.route[sv_conf.nroute]);
    else if (!known(key, world_fields, &sv_conf)) complain("an unknown name");
  }
  if (error)
    { sv_log("the configuration %s: %s (unknown or misspelt?)", env ? env : "built in", error); return EINVAL; }
  for (struct devconf* d = sv_conf.dev; d < sv_conf.dev + sv_conf.ndev; d++)
    d->visible = !node || !*node || !d->node[0] || !strcmp(node, d->node);
  return 0;
}
