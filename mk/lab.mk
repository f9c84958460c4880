# weft on the kernel's own RDMA stack, in virtual machines (weft lab -h; internal/lab). Nothing is installed here but by ci-lab.

LAB_NEEDS = qemu-system-x86 iproute2 rdma-core ibverbs-utils ibverbs-providers perftest procps xz-utils zstd
LAB_PROGRAMS = qemu-system-x86_64 ip rdma ss ibv_devinfo ib_write_bw ps xz zstd

test-lab: lab-needs dist simverbs $(STEP) ## the verbs suite in virtual machines with Soft-RoCE; needs qemu-system-x86 and more, and says so
	@LAB_DIST=$(abspath $(DIST)) $(STEP) -kind gotest "the lab" $(GOTEST) -count=1 ./internal/lab/suite

# First of all, before anything is built or a kernel downloaded.
lab-needs:
	@lack=; for p in $(LAB_PROGRAMS); do command -v $$p >/dev/null || lack="$$lack $$p"; done; \
	if [ -n "$$lack" ]; then echo "test-lab: missing$$lack: tests that need them are left out; install $(LAB_NEEDS)" >&2; fi

# Where everything must hold, the lab may not be left out: what is missing is installed where that is possible.
ci-lab: dist simverbs $(STEP)
	@$(call install-missing,$(LAB_PROGRAMS),$(LAB_NEEDS),packages of the lab)
	@LAB_DIST=$(abspath $(DIST)) LAB_REQUIRED=1 $(STEP) -kind gotest "the lab" $(GOTEST) -count=1 ./internal/lab/suite

bench-lab: dist ## bandwidth and ping-pong over Soft-RoCE beside perftest, in the same run; needs what test-lab needs
	@CGO_ENABLED=0 $(GO) build -trimpath -buildvcs=false -o $(DIST)/bin/lab-bench ./internal/lab/bench
	@$(DIST)/bin/weft lab --timeout 20m -- $(DIST)/bin/lab-bench -dist $(DIST) $(ARGS)

.PHONY: lab-needs test-lab ci-lab bench-lab
