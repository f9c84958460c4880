#!/bin/sh
# HealthCheckProgram=/etc/slurm/health-check.sh and HealthCheckInterval=300 in slurm.conf: a node whose cards, links, limits or network
# would break or slow jobs is drained, with the sentence of weft doctor as its reason.
verdict=$(weft doctor --local --quiet 2>/dev/null) && exit 0
# What concerns plugins and settings is each job's own: slurmd's environment says nothing of it. Advice drains nobody.
codes=$(printf '%s\n' "${verdict%%advice:*}" | grep -o 'WEFT-[0-9]*' | grep -Ev 'WEFT-0(0[0-9]|1[0-48])')
[ -n "$codes" ] || exit 0
exec scontrol update "NodeName=${SLURMD_NODENAME:-$(hostname -s)}" State=DRAIN "Reason=$(printf %s "$verdict" | cut -c1-200)"
