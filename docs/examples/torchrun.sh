#!/bin/sh
# torchrun.sh NODES RANK MASTER SCRIPT [ARG...]: one node's part of a job of PyTorch over weft, without a scheduler. Each node needs
# weft in PATH, from the package or /opt/weft/bin.
set -eu
nodes=$1 rank=$2 master=$3
shift 3
eval "$(weft env)"
export NCCL_DEBUG="${NCCL_DEBUG:-INFO}"
exec torchrun --nnodes "$nodes" --node-rank "$rank" --nproc-per-node gpu --master-addr "$master" --master-port 29500 "$@"
