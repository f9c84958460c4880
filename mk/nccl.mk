# weft under the real NCCL, without a GPU (tools/simgpu/README.md). Sources are for the user to bring: NCCL_SRC=TREE[:TREE...].

NCCL_OUT  ?= $(DIST)/nccl
NCCL_JOBS ?= $(shell nproc)
NCCL_TREES = $(subst :, ,$(NCCL_SRC))
NCCL_HOURS = $(words $(NCCL_TREES))# that a run may take; with TIME as long as it says
NCCL_MAKE  = $(MAKE) --no-print-directory -f tools/simgpu/nccl.mk OUT=$(NCCL_OUT) NCCL=$1
NCCL_WHERE = NCCL_SRC=TREE[:TREE...] names source trees of NCCL, unmodified: git clone -b v2.30.7-1 https://github.com/NVIDIA/nccl

nccl-host: ## the host code of NCCL on a simulated CUDA, into dist/nccl/VERSION: NCCL_SRC=TREE[:TREE...]
	@test -n "$(NCCL_SRC)" || { echo "nccl-host: $(NCCL_WHERE)" >&2; exit 2; }
	@$(foreach t,$(NCCL_TREES),$(call alive,building NCCL from $t,$(call NCCL_MAKE,$t) -j$(NCCL_JOBS)) &&) true

nccl-nets: nccl-host # NCCL's own networks as plugins, beside it
	@$(foreach t,$(NCCL_TREES),$(call alive,building NCCL's networks from $t,$(call NCCL_MAKE,$t) -j$(NCCL_JOBS) nets) &&) true

test-nccl: $(STEP) ## weft under the real NCCL, over TCP and simulated RDMA: NCCL_SRC=TREE[:TREE...]; RUN=REGEXP chooses; TIME=2h and SEED=N are for TestRandomGroups
ifeq ($(NCCL_SRC),)
	@echo "test-nccl: left out: $(NCCL_WHERE)"
else
	@$(STEP) -limit $(NCCL_HOURS)h "NCCL on a simulated CUDA" $(MAKE) --no-print-directory nccl-host
	@WEFT_TEST_NCCL=$$(for t in $(NCCL_TREES); do $(call NCCL_MAKE,$$t) where; done | paste -sd:) \
	  $(STEP) -kind gotest -limit $(if $(TIME),9999h,$(NCCL_HOURS)h) "weft under NCCL" $(GO) test -timeout $(if $(TIME),0,$$((58 * $(NCCL_HOURS)))m) -count=1 $(if $(RUN),-run '$(RUN)') ./internal/nccl \
	  $(if $(TIME)$(SEED),-args $(if $(TIME),-for $(TIME)) $(if $(SEED),-seed $(SEED)))
endif

bench-nccl: ## weft beside NCCL's own networks under the real NCCL, over TCP and simulated RDMA: NCCL_SRC=TREE[:TREE...]; ARGS='-n 3 -only tcp' and more
ifeq ($(NCCL_SRC),)
	@echo "bench-nccl: left out: $(NCCL_WHERE)"
else
	@$(MAKE) --no-print-directory nccl-host
	@$(call alive,building the benchmark,$(GO) build -o $(CACHE)/bench/nccl ./internal/nccl/bench)
	@WEFT_TEST_NCCL=$$(for t in $(NCCL_TREES); do $(call NCCL_MAKE,$$t) where; done | paste -sd:) $(CACHE)/bench/nccl $(ARGS)
endif

.PHONY: nccl-host nccl-nets test-nccl bench-nccl
