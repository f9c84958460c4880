/* Launches: the arguments are copied, and the player that NCCL's library brought plays the kernel in its turn. */
#include "simcuda.h"

#include <string.h>

static simcuda_kernel player;
static const size_t* sizes;

void simcuda_set_kernel(simcuda_kernel run, const size_t* of) {
  player = run;
  sizes = of;
}

struct kernel {
  struct work w;
  const void* kernel;
  unsigned blocks;
  _Alignas(64) char args[];
};

static void play(struct work* w) {
  const struct kernel* k = (struct kernel*)w;
  player(k->kernel, k->args, k->blocks);
}

cudaError_t launch(const void* kernel, unsigned blocks, const void* args, size_t bytes, CUstream s) {
  if (!player || !args) return refused("a kernel launch");
  struct kernel* k = work_new(play, sizeof *k + bytes);
  k->kernel = kernel;
  k->blocks = blocks;
  memcpy(k->args, args, bytes);
  stream_add(s, k);
  return cudaSuccess;
}

/* NCCL's kernels up to 2.21 have one to three arguments, each a multiple of 8 bytes long. */
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* c, const void* kernel, void** args) {
  char all[256];
  size_t n = 0;
  for (int i = 0; sizes && sizes[i]; n += sizes[i++]) {
    if (n + sizes[i] > sizeof all) return refused("a launch with so large arguments");
    memcpy(all + n, args[i], sizes[i]);
  }
  return launch(kernel, c->gridDim.x, all, n, c->stream);
}

cudaError_t cudaLaunchKernel(const void* kernel, dim3 grid, dim3 block, void** args, size_t shared, cudaStream_t s) {
  const cudaLaunchConfig_t c = {grid, block, shared, s, NULL, 0};
  return cudaLaunchKernelExC(&c, kernel, args);
}

/* Later ones have one block of bytes. */
CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
  unsigned shared,
                        CUstream s, void** params, void** extra) {
  const void* args = NULL;
  size_t bytes = 0;
  for (; extra && *extra != CU_LAUNCH_PARAM_END; extra += 2) {
    if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER) args = extra[1];
    if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE) memcpy(&bytes, extra[1], sizeof bytes);
  }
  return launch(f, gx, args, bytes, s) ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
}

CUresult cuLaunchKernelEx(const CUlaunchConfig* c, CUfunction f, void** params, void** extra) {
  return cuLaunchKernel(f, c->gridDimX, c->gridDimY, c->gridDimZ, c->blockDimX, c->blockDimY, c->blockDimZ,
    c->sharedMemBytes, c->hStream,
                        params, extra);
}

cudaError_t cudaGetFuncBySymbol(cudaFunction_t* f, const void* symbol) {
  memcpy(f, &symbol, sizeof symbol);
  return cudaSuccess;
}
