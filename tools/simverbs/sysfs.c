/* The files below ibv_device.ibdev_path, as /sys/class/infiniband has them: programs read some properties there. A device
 * with a PCI address gets a `device` link to a folder of that name, one without gets none, as rxe has none. */
#include "sim.h"

#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void directories(char* path) {
  for (char* s = strchr(path + 1, '/'); s; s = strchr(s + 1, '/')) {
    *s = 0;
    mkdir(path, 0700);
    *s = '/';
  }
}

__attribute__((format(printf, 3, 4))) static void file(const char* dir, const char* name, const char* format, ...) {
  char path[512];
  snprintf(path, sizeof path, "%s/%s", dir, name);
  directories(path);
  FILE* f = fopen(path, "we");
  if (!f) return;
  va_list args;
  va_start(args, format);
  vfprintf(f, format, args);
  va_end(args);
  fputc('\n', f);
  fclose(f);
}

static void gid_files(const char* dir, int port, int i, const struct gid* g, const char* netdev) {
  static const char* const types[] = {"IB/RoCE v1", "IB/RoCE v1", "RoCE v2"};
  char name[96], text[48] = "", *t = text;
  for (int k = 0; k < 16; k += 2) t += sprintf(t, "%s%02x%02x", k ? ":" : "", g->raw.raw[k], g->raw.raw[k + 1]);
  snprintf(name, sizeof name, "ports/%d/gids/%d", port, i);
  file(dir, name, "%s", text);
  if (!g->used) return;
  snprintf(name, sizeof name, "ports/%d/gid_attrs/types/%d", port, i);
  file(dir, name, "%s", types[g->type]);
  snprintf(name, sizeof name, "ports/%d/gid_attrs/ndevs/%d", port, i);
  if (netdev[0]) file(dir, name, "%s", netdev);
}

static void pci(struct devconf* d, const char* dir) {
  char folder[512], link[512], bus[8];
  snprintf(bus, sizeof bus, "%.7s", d->pci);
  if (d->pci[0] == '/') snprintf(folder, sizeof folder, "%s%s", sv_conf.dir, d->pci);
  else snprintf(folder, sizeof folder, "%s/sys/devices/pci%s/%s", sv_conf.dir, bus, d->pci);
  file(folder, "class", "0x020700");
  file(folder, "vendor", "0x15b3");
  file(folder, "device", "0x1021");
  file(folder, "numa_node", "-1");
  file(folder, "max_link_speed", "32.0 GT/s PCIe");
  file(folder, "max_link_width", "16");
  snprintf(link, sizeof link, "%s/device", dir);
  unlink(link);
  if (symlink(folder, link)) sv_log("link %s: %s", link, strerror(errno));
}

void sv_sysfs_write(struct devconf* d) {
  char dir[512], name[64];
  int i = (int)(d - sv_conf.dev);
  snprintf(dir, sizeof dir, "%s/sys/class/infiniband/%s%s", sv_conf.dir, d->node[0] ? d->node : "", d->node[0] ? "." : "");
  strncat(dir, d->name, sizeof dir - strlen(dir) - 1);
  char guid[24];
  snprintf(guid, sizeof guid, "%04x:%04x:%04x:%04x", (unsigned)(d->guid >> 48), (unsigned)(d->guid >> 32 & 0xffff),
           (unsigned)(d->guid >> 16 & 0xffff), (unsigned)(d->guid & 0xffff));
  file(dir, "node_guid", "%s", guid);
  file(dir, "sys_image_guid", "%s", guid);
  file(dir, "node_type", "1: CA");
  file(dir, "fw_ver", "1.0.simverbs");
  file(dir, "hca_type", d->mlx5 ? "MT4129" : "simverbs");
  if (d->netdev[0]) file(dir, "parent", "%s", d->netdev);
  if (d->pci[0]) pci(d, dir);
  for (int p = 1; p <= d->ports; p++) {
    struct { const char* name; const char* text; } const port[] = {
        {"state", "4: ACTIVE"}, {"phys_state", "5: LinkUp"},
        {"link_layer", d->link == IBV_LINK_LAYER_ETHERNET ? "Ethernet" : "InfiniBand"}, {"pkeys/0", "0xffff"}};
    for (size_t k = 0; k < sizeof port / sizeof port[0]; k++) {
      snprintf(name, sizeof name, "ports/%d/%s", p, port[k].name);
      file(dir, name, "%s", port[k].text);
    }
    snprintf(name, sizeof name, "ports/%d/rate", p);
    file(dir, name, "%d Gb/sec", d->speed / 1000);
    for (int g = 0; g < d->ngid[p - 1]; g++) gid_files(dir, p, g, &sv_conf.port[i * MAX_PORT + p - 1].gids[g], d->netdev);
  }
}
