# Figures, each beside its yardstick in the same run.

# Open MPI is on PATH, with its headers (package libopenmpi-dev); else coll is without it. Asked by bench alone: it takes a while.
MPI = mpirun --version 2>/dev/null | grep -q 'Open MPI' && mpicc -fsyntax-only internal/bench/mpi/allreduce.c >/dev/null 2>&1

bench: all simverbs $(CACHE)/bench/both $(if $(NCCL_SRC),nccl-nets) ## bandwidth, latency, CPU, connects, memory, over TCP and simulated verbs, beside plain C loops, collNet beside Open MPI (NCCL_SRC=TREE: and NCCL's own networks; VS=OTHER.so: and another plugin; ONLY=CHAPTERS; ROUNDS=N)
	@if $(MPI); then $(MAKE) --no-print-directory $(CACHE)/bench/mpi; else rm -f $(CACHE)/bench/mpi; fi
	@$(call alive,building the benchmarks,$(GO) build -o $(CACHE)/bench/bench ./internal/bench)
	@$(CACHE)/bench/bench -dist $(DIST) -both $(CACHE)/bench/both -mpi $(CACHE)/bench/mpi $(if $(VS),-vs $(VS)) $(if $(NCCL_SRC),-nets $$($(call NCCL_MAKE,$(firstword $(NCCL_TREES))) where)) $(if $(ONLY),-only $(ONLY)) $(if $(ROUNDS),-n $(ROUNDS))

$(CACHE)/bench/both: $(wildcard internal/bench/both/*.[ch] headers/nccl/*.h headers/verbs/*.h)
	@mkdir -p $(@D)
	$(CC) -std=gnu11 -O2 -g -Wall -Wextra -Wno-unused-parameter -Iheaders -Iheaders/nccl -o $@ $(filter %.c,$^) -ldl

$(CACHE)/bench/mpi: internal/bench/mpi/allreduce.c
	@mkdir -p $(@D)
	mpicc -std=gnu11 -O2 -g -Wall -Wextra -o $@ $<

bench-profile: all simverbs $(CACHE)/bench/both $(CACHE)/bench/events $(if $(NCCL_SRC),nccl-host) ## what WEFT_PROFILE costs: an event, 100,000 a second, a message, bandwidth, in rounds that alternate, with bounds (NCCL_SRC=TREE: and under the real NCCL; ONLY=CHAPTERS; ROUNDS=N)
	@$(call alive,building the benchmarks,$(GO) build -o $(CACHE)/bench/bench ./internal/bench)
	@$(if $(NCCL_SRC),WEFT_TEST_NCCL=$$(for t in $(NCCL_TREES); do $(call NCCL_MAKE,$$t) where; done | paste -sd:)) \
	  $(CACHE)/bench/bench -dist $(DIST) -both $(CACHE)/bench/both -events $(CACHE)/bench/events -only $(or $(ONLY),profile) -n $(or $(ROUNDS),20)

$(CACHE)/bench/events: internal/bench/events/events.c $(wildcard headers/nccl/*.h)
	@mkdir -p $(@D)
	$(CC) -std=gnu11 -O2 -g -Wall -Wextra -Wno-unused-parameter -Iheaders -Iheaders/nccl -o $@ $< -ldl -lpthread

.PHONY: bench bench-profile
