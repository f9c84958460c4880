/* Elements of every type: values that a rank, an index and a seed name, and what all ranks' values come to.
 *
 * Integers wrap and must be exact, as minima and maxima must. A sum or a product of floats is compared with the one
 * in long double, and may differ by what n-1 roundings to the type come to, wherever they are done:
 * ((1+u)^(n-1) - 1) times the sum of the magnitudes (of a product: times its magnitude), u half a unit of the last
 * place of 1. Values are such that no partial result overflows or becomes subnormal. */
#define _GNU_SOURCE
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "host.h"

/* A floating-point format: bits of the exponent and of the fraction; none of the first for integers. */
struct format {
  int bytes, exponent, fraction;
  bool finite; /* all exponents are numbers': there is no infinity, and one NaN */
};
static const struct format formats[ncclNumTypes] = {
    [ncclInt8] = {.bytes = 1},   [ncclUint8] = {.bytes = 1},   [ncclInt32] = {.bytes = 4},
    [ncclUint32] = {.bytes = 4}, [ncclInt64] = {.bytes = 8},   [ncclUint64] = {.bytes = 8},
    [ncclFloat16] = {2, 5, 10, false},   [ncclFloat32] = {4, 8, 23, false},
    [ncclFloat64] = {8, 11, 52, false},  [ncclBfloat16] = {2, 8, 7, false},
    [ncclFloat8e4m3] = {1, 4, 3, true},  [ncclFloat8e5m2] = {1, 5, 2, false}};

/* How many ranks have a value other than the neutral one, so that nothing overflows in the smallest type. */
enum { MOST_TERMS = 256, MOST_FACTORS = 4 };

int64_t value_size(int type) { return type >= 0 && type < ncclNumTypes ? formats[type].bytes : 0; }

static bool is_signed(int type) { return type == ncclInt8 || type == ncclInt32 || type == ncclInt64; }

static uint64_t get_bits(const void* p, int64_t i, int bytes) {
  uint64_t bits = 0;
  memcpy(&bits, (const char*)p + i * bytes, (size_t)bytes);
  return bits;
}

static void put_bits(void* p, int64_t i, int bytes, uint64_t bits) {
  memcpy((char*)p + i * bytes, &bits, (size_t)bytes);
}

static int bias_of(const struct format* f) { return (1 << (f->exponent - 1)) - 1; }

static double decode(const struct format* f, uint64_t bits) {
  const int top = (1 << f->exponent) - 1, e = (int)(bits >> f->fraction) & top;
  const uint64_t ones = ((uint64_t)1 << f->fraction) - 1, fraction = bits & ones;
  const uint64_t sign = bits >> (f->exponent + f->fraction) & 1;
  if (e == top && (f->finite ? fraction == ones : fraction != 0)) return NAN;
  if (e == top && !f->finite) return sign ? -INFINITY : INFINITY;
  if (e == 0) return (sign ? -1 : 1) * ldexp((double)fraction, 1 - bias_of(f) - f->fraction);
  const uint64_t wide = sign << 63 | (uint64_t)(e - bias_of(f) + 1023) << 52 | fraction << (52 - f->fraction);
  double x;
  memcpy(&x, &wide, sizeof x);
  return x;
}

/* A rank's element. Magnitudes of floats lie in 1/8 to 2, of factors in 1/2 to 2. */
static uint64_t value_bits(const struct values* v, int rank, int64_t i) {
  const struct format* f = &formats[v->type];
  const uint64_t h = pattern_word(v->seed + ((uint64_t)rank << 40), (uint64_t)i);
  const uint64_t mask = UINT64_MAX >> (64 - 8 * f->bytes);
  if (!f->exponent) return mask & (h | (v->op == ncclProd)); /* even factors would soon make 0 */
  const uint64_t one = (uint64_t)bias_of(f) << f->fraction;
  const uint64_t sign = h >> 63 << (f->exponent + f->fraction);
  const uint64_t down = (h >> 60 & (v->op == ncclProd ? 1 : 3)) << f->fraction;
  const int turn = (int)((rank + i) % v->nranks);
  if (v->op == ncclProd && turn >= MOST_FACTORS) return sign | one;
  if (v->op == ncclSum && turn >= MOST_TERMS) return 0;
  return sign | (one - down) | (h & (((uint64_t)1 << f->fraction) - 1));
}

static double float_value(const struct values* v, int rank, int64_t i) {
  return decode(&formats[v->type], value_bits(v, rank, i));
}

void values_fill(void* p, int64_t first, int64_t count, const struct values* v, int rank) {
  const int bytes = formats[v->type].bytes;
  for (int64_t i = 0; i < count; i++) put_bits(p, i, bytes, value_bits(v, rank, first + i));
}

/* The bits of an integer as a number that is ordered as its type is. */
static int64_t ordered(const struct values* v, uint64_t bits) {
  const int unused = 64 - 8 * formats[v->type].bytes;
  const int64_t wide = (int64_t)(bits << unused);
  return is_signed(v->type) ? wide : (int64_t)((uint64_t)wide ^ (uint64_t)1 << 63);
}

static uint64_t int_result(const struct values* v, int64_t i) {
  uint64_t r = value_bits(v, 0, i);
  for (int k = 1; k < v->nranks; k++) {
    const uint64_t x = value_bits(v, k, i);
    if (v->op == ncclSum) r += x;
    if (v->op == ncclProd) r *= x;
    if (v->op == ncclMax && ordered(v, x) > ordered(v, r)) r = x;
    if (v->op == ncclMin && ordered(v, x) < ordered(v, r)) r = x;
  }
  return r;
}

/* The result, and what a right one may be off by, in units of `growth`. */
static long double float_result(const struct values* v, int64_t i, long double* magnitude) {
  long double r = float_value(v, 0, i), sum = fabsl(r);
  for (int k = 1; k < v->nranks; k++) {
    const double x = float_value(v, k, i);
    sum += fabs(x);
    if (v->op == ncclSum) r += x;
    if (v->op == ncclProd) r *= x;
    if (v->op == ncclMax && x > (double)r) r = x;
    if (v->op == ncclMin && x < (double)r) r = x;
  }
  *magnitude = v->op == ncclSum ? sum : v->op == ncclProd ? fabsl(r) : 0;
  return r;
}

/* What n-1 roundings come to, of a magnitude of 1; those of long double are in it. */
static long double growth(const struct values* v) {
  const double u = ldexp(1, -formats[v->type].fraction - 1);
  return expm1l((v->nranks - 1) * log1pl(u + LDBL_EPSILON));
}

static double last_place(const struct format* f, long double x) {
  int e;
  const int smallest = 2 - (1 << (f->exponent - 1));
  frexpl(x, &e);
  return ldexp(1, (e - 1 < smallest || x == 0 ? smallest : e - 1) - f->fraction);
}

static bool right(const void* p, int64_t at, int64_t i, const struct values* v, long double bound, double* ulp) {
  const struct format* f = &formats[v->type];
  const uint64_t have = get_bits(p, at, f->bytes), mask = UINT64_MAX >> (64 - 8 * f->bytes);
  *ulp = 0;
  if (v->of >= 0) return have == value_bits(v, v->of, i);
  if (!f->exponent) return have == (mask & int_result(v, i));
  long double magnitude;
  const long double want = float_result(v, i, &magnitude), off = fabsl(decode(f, have) - want);
  if (!(off <= bound * magnitude)) return false; /* a NaN is wrong */
  if (off > 0) *ulp = (double)(off / last_place(f, want));
  return true;
}

void values_check(const void* p, int64_t first, int64_t count, const struct values* v, struct verdict* out) {
  const long double bound = growth(v);
  for (int64_t i = 0; i < count; i++) {
    double ulp;
    if (!right(p, i, first + i, v, bound, &ulp) && out->bad++ == 0) out->first = first + i;
    if (ulp > out->ulp) out->ulp = ulp;
  }
}

static bool asked(struct req* q, struct values* v) {
  *v = (struct values){.type = (int)num(q, "type", ncclFloat32), .op = (int)num(q, "op", ncclSum),
                       .nranks = (int)num(q, "nranks", 1), .of = (int)num(q, "of", -1),
                       .seed = (uint64_t)num(q, "seed", 1)};
  if (value_size(v->type) && v->op >= ncclSum && v->op <= ncclMin && v->nranks > 0) return true;
  fail(q, "usage", "type %d, op %d of %d ranks: want 0 to 11, 0 to 3 and at least 1", v->type, v->op, v->nranks);
  return false;
}

static void c_fill(struct req* q) {
  struct values v;
  if (asked(q, &v)) values_fill(ptr(q, "addr"), num(q, "first", 0), num(q, "count", 0), &v, (int)num(q, "rank", 0));
}

static void c_check(struct req* q) {
  struct values v;
  struct verdict found = {.first = -1};
  if (!asked(q, &v)) return;
  values_check(ptr(q, "addr"), num(q, "first", 0), num(q, "count", 0), &v, &found);
  out_num(q, "bad", found.bad);
  out_num(q, "first", found.first);
  out_double(q, "ulp", found.ulp);
}

const struct command value_commands[] = {{"value.fill", c_fill}, {"value.check", c_check}, {NULL, NULL}};
