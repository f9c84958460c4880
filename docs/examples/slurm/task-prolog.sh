#!/bin/sh
# TaskProlog=/etc/slurm/task-prolog.sh in slurm.conf: what it prints as "export NAME=VALUE" is set for each task, as this node needs it.
# Slurm ends a task whose prolog fails, so where weft cannot be used this says so in the task's output, and the task goes on without.
if variables=$(weft env --format slurm); then
  printf '%s\n' "$variables"
else
  echo "print weft is not used on ${SLURMD_NODENAME:-this node}: weft env says why"
fi
