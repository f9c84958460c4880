/* Which GIDs reach which: those of one subnet always do, others where the configuration has a route. */
#include "sim.h"

#include <string.h>

static int inside(const union ibv_gid* g, const struct gid* net) {
  uint32_t whole = net->prefix / 8, rest = net->prefix % 8;
  return !memcmp(g->raw, net->raw.raw, whole) && (!rest || !((g->raw[whole] ^ net->raw.raw[whole]) >> (8 - rest)));
}

static int same_subnet(const struct gid* a, const struct gid* b) {
  const uint8_t* x = a->raw.raw;
  /* all share fe80:: */
  if (!get(a->used) || !get(b->used) || (x[0] == 0xfe && x[1] == 0x80 && a->type != IBV_GID_TYPE_IB)) return 0;
  return inside(&b->raw, a);
}

/* A port's subnets are those of all its GIDs. */
int sv_same_net(const struct port* a, const struct port* b) {
  int same = a == b;
  for (int i = 0; i < MAX_GID * MAX_GID && !same; i++) same = same_subnet(&a->gids[i / MAX_GID], &b->gids[i % MAX_GID]);
  return same;
}

/* Routers carry RoCE v2 only: version 1 has no IP header. */
int sv_routed(const struct gid* from, const struct gid* to) {
  if (from->type != IBV_GID_TYPE_ROCE_V2 || to->type != IBV_GID_TYPE_ROCE_V2) return 0;
  for (int i = 0; i < sv_conf.nroute; i++) {
    const struct gid *a = &sv_conf.route[i][0], *b = &sv_conf.route[i][1];
    if ((inside(&from->raw, a) && inside(&to->raw, b)) || (inside(&from->raw, b) && inside(&to->raw, a))) return 1;
  }
  return 0;
}
