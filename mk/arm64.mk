# The product for arm64, compiled here and run by qemu-user: what is wrong with its C, its link or its assumptions about the
# kernel shows, what only a weaker memory order does would not. qemu-user has no userfaultfd, no process_vm_writev and no robust
# futexes, and takes most of madvise for a hint; sanitizers do not run under it. Nothing is installed here but by ci-arm64.

ARM_NEEDS = gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user
ARM_CC    = aarch64-linux-gnu-gcc
ARM_RUN   = qemu-aarch64 -L /usr/aarch64-linux-gnu
ARM_DIST  = $(abspath $(CACHE)/arm64)
# The newest table stands for all.
ARM_TABLE = $(basename $(notdir $(lastword $(shell ls -v headers/nccl/net_v*.h))))
# The C host is what runs there; go test drives it from here. CGO_ENABLED=0, since CC is for what tests build for the host.
ARM_TEST  = CGO_ENABLED=0 CC=$(ARM_CC) WEFT_TEST_DIST=$(ARM_DIST)

ci-arm64: $(STEP)
	@$(call install-missing,$(ARM_CC) qemu-aarch64,$(ARM_NEEDS),packages for arm64)
	@$(MAKE) --no-print-directory test-arm64

test-arm64: $(STEP) ## the library compiled for arm64, its stress drivers, conformance and fuzzed table calls under qemu-user
	@$(STEP) "vet for arm64" env GOARCH=arm64 CGO_ENABLED=0 $(GO) vet ./abi/... ./collnet/choose/... ./collnet/schedule/... ./transport/record/format/... ./transport/meter/format/... ./headers/... ./gen/... ./transport/wire/... ./transport/rdma/... ./internal/knob/... ./tools/weft/...
	@$(GO) build -o $(CACHE)/weftlink ./internal/link/weftlink
	@$(STEP) "build for arm64" env GOARCH=arm64 CC=$(ARM_CC) $(CACHE)/weftlink -o $(ARM_DIST)
	@mv $(ARM_DIST)/bin/weft-host $(ARM_DIST)/bin/weft-host.arm64
	@printf '#!/bin/sh\nexec $(ARM_RUN) "$$0.arm64" "$$@"\n' >$(ARM_DIST)/bin/weft-host && chmod +x $(ARM_DIST)/bin/weft-host
	@$(STEP) "stress drivers on arm64" $(MAKE) --no-print-directory stress-arm64
	@$(ARM_TEST) $(STEP) -kind gotest "conformance and table calls on arm64" $(GOTEST) -count=1 -run '^TestLibrary(OverRDMA)?$$/^$(ARM_TABLE)$$|^TestTableCalls$$' ./internal/conform ./internal/fuzz

stress-arm64: $(addprefix $(CACHE)/stress/arm64/,stress hostile lanes gates inorder kernels)
	for d in stress hostile lanes; do timeout 300 $(ARM_RUN) $(CACHE)/stress/arm64/$$d $(STRESS_SEED) 2 || exit 1; done
	timeout 300 $(ARM_RUN) $(CACHE)/stress/arm64/gates
	timeout 300 $(ARM_RUN) $(CACHE)/stress/arm64/inorder
	timeout 300 $(ARM_RUN) $(CACHE)/stress/arm64/kernels $(STRESS_SEED) 2

$(CACHE)/stress/arm64/%: $(STRESS_DIR)/%.c $(STRESS_DEPS) $(STRESS_SIM) tools/simverbs/sim.h
	@mkdir -p $(@D)
	$(ARM_CC) $(wordlist 2,$(words $(STRESS_CC)),$(STRESS_CC)) -Wno-unused-parameter -O1 -o $@ $< $(STRESS_SRC) $(if $(filter lanes,$*),$(STRESS_SIM)) -lpthread

$(CACHE)/stress/arm64/kernels: $(KERNELS)
	@mkdir -p $(@D)
	$(ARM_CC) $(wordlist 2,$(words $(STRESS_CC)),$(STRESS_CC)) -Icollnet/kernels -O2 -o $@ $(filter %.c,$^)

.PHONY: ci-arm64 test-arm64 stress-arm64
