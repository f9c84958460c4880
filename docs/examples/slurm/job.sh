#!/bin/sh
# A job of PyTorch over weft: sbatch job.sh. It first moves verified data between the nodes, and says what the links go over.
#SBATCH --job-name=weft
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --output=weft-%j.log
set -eu

# One node of the job answers for all: their machines are alike. Where they are not, use task-prolog.sh.
eval "$(weft env)"
export NCCL_DEBUG="${NCCL_DEBUG:-INFO}"

srun weft run --sizes 8,64K,4M

# The training; without it the job is a test of the network.
if [ $# -gt 0 ]; then
  srun "$@"
fi
