/* Every version of every table, through its header and its template. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host.h"

/* A string of the properties; (fillXX) when the plugin did not write the pointer. */
static void out_props_str(struct req* q, const char* key, const char* s, int fill) {
  const char* untouched;
  char text[16];
  memset(&untouched, fill, sizeof untouched);
  snprintf(text, sizeof text, "(fill%02x)", fill & 255);
  out_str(q, key, s == untouched ? text : s);
}

/* For the templates: names of functions and types of version V. */
#define CAT2(a, b, c) a##b##c
#define CAT(a, b, c) CAT2(a, b, c)
#define TYPE(name) CAT(name##_v, V, _t)
#define QUOTED(x) #x
#define QUOTE(x) QUOTED(x)

#define V 2
#include "net_call.inc"
#define V 3
#include "net_call.inc"
#define V 4
#include "net_call.inc"
#define V 5
#include "net_call.inc"
#define V 6
#include "net_call.inc"
#define V 7
#include "net_call.inc"
#define V 8
#include "net_call.inc"
#define V 9
#include "net_call.inc"
#define V 10
#include "net_call.inc"
#define V 11
#include "net_call.inc"
#define V 12
#include "net_call.inc"
#define V 3
#include "coll_call.inc"
#define V 4
#include "coll_call.inc"
#define V 5
#include "coll_call.inc"
#define V 6
#include "coll_call.inc"
#define V 7
#include "coll_call.inc"
#define V 8
#include "coll_call.inc"
#define V 9
#include "coll_call.inc"
#define V 10
#include "coll_call.inc"
#define V 11
#include "coll_call.inc"
#define V 12
#include "coll_call.inc"
#define V 1
#include "profiler_v1.h"
#include "prof_call.inc"
#define V 2
#include "profiler_v2.h"
#include "prof_call.inc"
#define V 3
#include "profiler_v3.h"
#include "prof_call.inc"
#define V 4
#include "profiler_v4.h"
#include "prof_call.inc"
#define V 5
#include "profiler_v5.h"
#include "prof_call.inc"
#define V 6
#include "profiler_v6.h"
#include "prof_call.inc"

static const struct table* const net[] = {
    NULL, NULL, &net_table_v2, &net_table_v3, &net_table_v4, &net_table_v5, &net_table_v6, &net_table_v7, &net_table_v8, &net_table_v9, &net_table_v10, &net_table_v11, &net_table_v12};
static const struct table* const coll[] = {
    NULL, NULL, NULL, &coll_table_v3, &coll_table_v4, &coll_table_v5, &coll_table_v6, &coll_table_v7, &coll_table_v8, &coll_table_v9, &coll_table_v10, &coll_table_v11, &coll_table_v12};
static const struct table* const prof[] = {
    NULL, &prof_table_v1, &prof_table_v2, &prof_table_v3, &prof_table_v4, &prof_table_v5, &prof_table_v6};

const struct table* table_known(const char* family, int version) {
  if (version < 0) return NULL;
  if (strcmp(family, "net") == 0) return version <= 12 ? net[version] : NULL;
  if (strcmp(family, "coll") == 0) return version <= 12 ? coll[version] : NULL;
  return strcmp(family, "prof") == 0 && version <= 6 ? prof[version] : NULL;
}

#define SLOT_NAME(s) [S_##s] = #s,
const char* const slot_names[S_COUNT] = {SLOTS(SLOT_NAME)};
