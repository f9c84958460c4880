#!/bin/sh
# TaskProlog=/etc/slurm/task-prolog.sh in slurm.conf: what it prints as "export NAME=VALUE" is set for each task, as this node needs it.
exec weft env --format slurm
