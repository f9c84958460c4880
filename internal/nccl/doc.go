// Package nccl runs weft under the real NCCL: the host code of its releases, unmodified, on the simulated CUDA of
// tools/simgpu. Ranks are processes of the driver there, each a host of its own. The package starts them, hurts them,
// and judges what they say and what NCCL's log says; the suite is its tests, which make test-nccl runs.
package nccl
