# The C of the fast path, without Go: stress drivers under the sanitizers, and a benchmark beside a plain loop.

STRESS_DIR  = transport/fastpath/stress
STRESS_SRC  = $(wildcard transport/fastpath/*.c transport/tcp/*.c transport/record/*.c transport/meter/*.c)
STRESS_SIM  = $(filter-out tools/simverbs/mlx5.c,$(wildcard tools/simverbs/*.c)) # lanes runs on queue pairs
STRESS_DEPS = $(STRESS_SRC) $(wildcard transport/fastpath/*.h transport/tcp/*.h transport/record/*.h transport/meter/*.h $(STRESS_DIR)/*.h)
STRESS_CC   = $(CC) -std=gnu11 -g -Wall -Wextra -fvisibility=hidden -Iheaders -Itransport/record -Itransport/meter -Iinternal/build
KERNELS     = $(wildcard collnet/kernels/*.[ch] collnet/kernels/stress/*.c) internal/build/check.h
STRESS_ROUNDS ?= 4
STRESS_SEED = $(or $(SEED),1)

stress: stress-tsan stress-asan stress-ubsan ## the C of the fast path from several threads, under TSan, ASan and UBSan

stress-tsan stress-asan stress-ubsan: stress-%: $(CACHE)/stress/%/stress $(CACHE)/stress/%/hostile $(CACHE)/stress/%/lanes $(CACHE)/stress/%/gates $(CACHE)/stress/%/inorder $(CACHE)/stress/%/record $(CACHE)/stress/%/meter $(CACHE)/stress/%/kernels
	timeout 300 $(CACHE)/stress/$*/stress $(STRESS_SEED) $(STRESS_ROUNDS)
	timeout 300 $(CACHE)/stress/$*/hostile $(STRESS_SEED) $(STRESS_ROUNDS)
	timeout 300 $(CACHE)/stress/$*/lanes $(STRESS_SEED) $(STRESS_ROUNDS)
	timeout 300 $(CACHE)/stress/$*/gates
	timeout 300 $(CACHE)/stress/$*/inorder
	timeout 300 $(CACHE)/stress/$*/record $(STRESS_SEED) $(STRESS_ROUNDS)
	timeout 300 $(CACHE)/stress/$*/meter $(STRESS_SEED) $(STRESS_ROUNDS)
	timeout 300 $(CACHE)/stress/$*/kernels $(STRESS_SEED) $(STRESS_ROUNDS)

# stress_rule(short name, sanitizer, flags for the simulation: gcc warns of every fence under TSan)
define stress_rule
$(CACHE)/stress/$1/%: $(STRESS_DIR)/%.c $(STRESS_DEPS)
	@mkdir -p $$(@D)
	$(STRESS_CC) -O1 -fsanitize=$2 -fno-sanitize-recover=all -o $$@ $$< $(STRESS_SRC) -lpthread

$(CACHE)/stress/$1/record $(CACHE)/stress/$1/meter: $(CACHE)/stress/$1/%: $(wildcard transport/record/*.[ch] transport/record/stress/*.c transport/meter/*.[ch] transport/meter/stress/*.c) internal/build/check.h
	@mkdir -p $$(@D)
	$(STRESS_CC) -O1 -fsanitize=$2 -fno-sanitize-recover=all -o $$@ $$(wildcard transport/$$*/*.c transport/$$*/stress/*.c) -lpthread

$(CACHE)/stress/$1/kernels: $(KERNELS)
	@mkdir -p $$(@D)
	$(STRESS_CC) -Icollnet/kernels -O1 -fsanitize=$2 -fno-sanitize-recover=all -o $$@ $$(filter %.c,$$^) -lpthread

$(CACHE)/stress/$1/lanes: $(STRESS_DIR)/lanes.c $(STRESS_DEPS) $(STRESS_SIM) tools/simverbs/sim.h
	@mkdir -p $$(@D)
	$(STRESS_CC) -Wno-unused-parameter $3 -O1 -fsanitize=$2 -fno-sanitize-recover=all -o $$@ $$< $(STRESS_SRC) $(STRESS_SIM) -lpthread
endef
$(eval $(call stress_rule,tsan,thread,-Wno-tsan))
$(eval $(call stress_rule,asan,address))
$(eval $(call stress_rule,ubsan,undefined))

bench-fast: $(CACHE)/stress/bench ## the fast path and a plain loop over loopback TCP, side by side
	$(CACHE)/stress/bench $(STREAMS)

$(CACHE)/stress/bench: $(STRESS_DIR)/bench.c $(STRESS_DEPS)
	@mkdir -p $(@D)
	$(STRESS_CC) -O2 -o $@ $< $(STRESS_SRC) -lpthread

.PHONY: stress stress-tsan stress-asan stress-ubsan bench-fast
