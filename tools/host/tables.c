/* Every version of every table, through its header and its template. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host.h"

/* A string of the properties; (fillXX) when the plugin did not write the pointer. */
static void out_props_str(struct req* q, const char* key, const char* s, int fill) {
  const char* untouched;
  char text[16];
  memset(&untouched, fill, sizeof untouched);
  snprintf(text, sizeof text, "(fill%02x)", fill & 255);
  out_str(q, key, s == untouched ? text : s);
}

/* One for the process, as NCCL has it: a profiler may write it at any time after its init. */
static int prof_mask;

/* For the templates: names of functions and types of version V. zz_tables.inc sets V, TABLE (the table's type, or
 * the view through which it is called) and VIEW. */
#define CAT2(a, b, c) a##b##c
#define CAT(a, b, c) CAT2(a, b, c)
#define TYPE(name) CAT(name##_v, V, _t)

#include "zz_tables.inc"

static const struct family* family_called(const char* name) {
  for (size_t i = 0; i < sizeof families / sizeof *families; i++)
    if (strcmp(families[i].name, name) == 0) return &families[i];
  return NULL;
}

const struct table* table_known(const char* family, int version) {
  const struct family* f = family_called(family);
  return f && version >= 0 && version < f->end ? f->tables[version] : NULL;
}

const char* family_symbol(const char* family) {
  const struct family* f = family_called(family);
  return f ? f->symbol : NULL;
}

#define SLOT_NAME(s) [S_##s] = #s,
const char* const slot_names[S_COUNT] = {SLOTS(SLOT_NAME)};
