#!/bin/sh
# HealthCheckProgram=/etc/slurm/health-check.sh and HealthCheckInterval=300 in slurm.conf: a node on which jobs would break, or run
# slowly, is drained with the sentence of weft doctor as its reason.
verdict=$(weft doctor --quiet 2>&1) && exit 0
# Advice and a machine that cannot be read at the moment are no reason to drain.
case "$verdict" in
*BROKEN* | *SLOW*) exec scontrol update "NodeName=${SLURMD_NODENAME:-$(hostname -s)}" State=DRAIN "Reason=$(printf %s "$verdict" | head -n 1 | cut -c1-200)" ;;
esac
exit 0
