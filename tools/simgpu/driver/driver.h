/* One rank of a test of NCCL: what the modes share. */
#ifndef DRIVER_H
#define DRIVER_H

#include <cuda_runtime.h>
#include <nccl.h>
#include <stdbool.h>
#include <stddef.h>

/* What older releases lack. */
#if NCCL_VERSION_CODE < NCCL_VERSION(2, 14, 0)
#define ncclInProgress ((ncclResult_t)7)
#endif
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 7, 0)
#define HAS_SENDS 1
#define AND_ALLTOALL ",alltoall"
#define AND_SENDS AND_ALLTOALL ",sendrecv"
#else
#define HAS_SENDS 0
#define AND_ALLTOALL ""
#define AND_SENDS ""
#endif

extern _Thread_local int me; /* this rank, of so many */
extern int ranks;

/* Options of the command line, KEY=VALUE. A size may end with K, M or G. */
const char* option(const char* key, const char* otherwise);
size_t option_size(const char* key, const char* otherwise);
size_t size_of(const char* key, const char* text);

/* A line that begins with this rank's number, said at once. */
void say(const char* format, ...) __attribute__((format(printf, 1, 2)));
/* Says why, and ends the process: what the rank was asked to do is impossible, or has failed. */
_Noreturn void fail(const char* format, ...) __attribute__((format(printf, 1, 2)));

void nccl_check(ncclResult_t r, const char* call);
void cuda_check(cudaError_t e, const char* call);
#define NCCL(call) nccl_check(call, #call)
#define CUDA(call) cuda_check(call, #call)
const char* last_error(ncclComm_t comm);
double seconds(void);

/* The communicator of all ranks with this number: rank 0 leaves its id in a file for the others. */
ncclComm_t join(int number);
/* Waits until every rank has come here with this number, by files beside those. */
void meet(int number);
void leave(ncclComm_t comm); /* destroys it, in good order */
/* Before a communicator is destroyed: up to 2.16 that ends its proxy thread, whatever it has to send still (2.14.3
 * src/proxy.cc:679). */
void before_destroy(void);

/* Data: values that every rank can tell of every other, small enough that every sum is exact in every type. */
extern const char* type_name;
ncclDataType_t type(void);
size_t type_size(void);
void fill(void* p, size_t n); /* with this rank's values */
double element(const void* p, size_t i);
double value_of(int rank, size_t i);
double sum_of(size_t i);

/* An operation by its name. n is counted as nccl-tests does: elements of the larger buffer. */
struct op {
  const char* name;
  ncclComm_t comm;
  cudaStream_t stream;
};
size_t op_run(const struct op* o, void* send, void* recv, size_t n); /* how many elements it will have received */
size_t op_fit(const struct op* o, size_t n);                         /* n, cut to what the operation can take */
/* how many of them are wrong; says which */
size_t op_check(const struct op* o, const void* recv, size_t n, size_t got);
/* the ith, or another that the release can have in a group that first began */
const char* op_beside(const char* first, unsigned i);
unsigned op_names(void); /* how many there are */

/* Buffers on the device, a stream, and rounds of operations by their names (comma between), all checked. */
struct bench {
  ncclComm_t comm;
  cudaStream_t stream;
  void *send, *recv;
  size_t bytes;
};
void bench_open(struct bench* b, ncclComm_t comm, size_t bytes);
void bench_close(struct bench* b);
size_t bench_rounds(const struct bench* b, const char* names, int rounds); /* how many operations were wrong */

/* Waits until the stream is idle, or the communicator tells of an error, or limit seconds have passed. */
enum outcome { DONE, TOLD, SILENT };
enum outcome watch(const struct bench* b, double limit);

/* Modes: each returns how many operations were wrong. */
size_t mode_sizes(ncclComm_t comm);
size_t mode_speed(ncclComm_t comm);
size_t mode_several(ncclComm_t comm);
size_t mode_random(ncclComm_t comm);
size_t mode_registered(ncclComm_t comm);
size_t mode_split(ncclComm_t comm);
size_t mode_abort(ncclComm_t comm);
size_t mode_traffic(ncclComm_t comm);
size_t mode_outstanding(ncclComm_t comm);
size_t mode_storm(ncclComm_t none);
size_t mode_threads(ncclComm_t none);
#endif
