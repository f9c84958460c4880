/* What there is not: graphs, and launches on several devices at once. NCCL asks, and does without. */
#include "simcuda.h"

cudaError_t cudaLaunchCooperativeKernelMultiDevice(struct cudaLaunchParams* p, unsigned n, unsigned flags) {
  return refused("cudaLaunchCooperativeKernelMultiDevice");
}

cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t s, cudaGraphNode_t* deps, size_t n, unsigned flags) {
  return refused("cudaStreamUpdateCaptureDependencies");
}
cudaError_t cudaGraphAddEventRecordNode(cudaGraphNode_t* out, cudaGraph_t g, const cudaGraphNode_t* deps, size_t n,
  cudaEvent_t e) {
  return refused("cudaGraphAddEventRecordNode");
}
cudaError_t cudaGraphAddEventWaitNode(cudaGraphNode_t* out, cudaGraph_t g, const cudaGraphNode_t* deps, size_t n,
  cudaEvent_t e) {
  return refused("cudaGraphAddEventWaitNode");
}
cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t* out, cudaGraph_t g, const cudaGraphNode_t* deps, size_t n) {
  return refused("cudaGraphAddEmptyNode");
}
cudaError_t cudaGraphAddHostNode(cudaGraphNode_t* out, cudaGraph_t g, const cudaGraphNode_t* deps, size_t n,
  const cudaHostNodeParams* p) {
  return refused("cudaGraphAddHostNode");
}
cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t* out, cudaGraph_t g, const cudaGraphNode_t* deps, size_t n,
  const cudaKernelNodeParams* p) {
  return refused("cudaGraphAddKernelNode");
}
cudaError_t cudaGraphAddDependencies(cudaGraph_t g, const cudaGraphNode_t* from, const cudaGraphNode_t* to, size_t n) {
  return refused("cudaGraphAddDependencies");
}
cudaError_t cudaUserObjectCreate(cudaUserObject_t* out, void* p, cudaHostFn_t destroy, unsigned refs, unsigned flags) {
  return refused("cudaUserObjectCreate");
}
cudaError_t cudaGraphRetainUserObject(cudaGraph_t g, cudaUserObject_t o, unsigned n, unsigned flags) {
  return refused("cudaGraphRetainUserObject");
}
