# The simulated libibverbs and the program that shows it faithful (tools/simverbs/README.md).

SIM      := tools/simverbs
SIM_DIST := $(DIST)/simverbs
SIM_C    := $(filter-out $(SIM)/mlx5.c,$(wildcard $(SIM)/*.c))
SIM_DEPS := $(SIM)/sim.h $(wildcard headers/verbs/*.h)
SIM_FLAGS = -std=gnu11 -O2 -g -fPIC -fvisibility=hidden -Wall -Wextra -Wno-unused-parameter -Iheaders $(SIM_SAN)
CONFORM_C := $(wildcard $(SIM)/conform/*.c)

simverbs: $(SIM_DIST)/libibverbs.so.1 $(SIM_DIST)/libmlx5.so.1 $(SIM_DIST)/conform ## the simulated libibverbs, into dist/simverbs/

$(SIM_DIST)/libibverbs.so.1: $(SIM_C) $(SIM_DEPS) $(SIM)/libibverbs.map
	@mkdir -p $(@D)
	$(CC) $(SIM_FLAGS) -shared -Wl,-soname,libibverbs.so.1 -Wl,--version-script=$(SIM)/libibverbs.map -Wl,-z,defs -o $@ $(SIM_C) -lpthread
	ln -sf libibverbs.so.1 $(@D)/libibverbs.so

$(SIM_DIST)/libmlx5.so.1: $(SIM)/mlx5.c $(SIM_DEPS) $(SIM)/libmlx5.map $(SIM_DIST)/libibverbs.so.1
	$(CC) $(SIM_FLAGS) -shared -Wl,-soname,libmlx5.so.1 -Wl,--version-script=$(SIM)/libmlx5.map -Wl,-z,defs -o $@ $< -L$(@D) -libverbs
	ln -sf libmlx5.so.1 $(@D)/libmlx5.so

$(SIM_DIST)/conform: $(CONFORM_C) $(SIM)/conform/conform.h $(SIM_DIST)/libibverbs.so.1
	$(CC) -std=gnu11 -O1 -g -Wall -Wextra -Wno-unused-parameter -Iheaders -I$(SIM)/conform $(SIM_SAN) -o $@ $(CONFORM_C) -L$(@D) -libverbs -lpthread

# The program connects two devices on one subnet; the time limit is for what would wait for ever.
CONFORM = WEFT_SIMVERBS_CTL=$(1)/ctl WEFT_SIMVERBS=$(SIM)/conform/pair.json LD_LIBRARY_PATH=$(1) timeout 120 $(1)/conform

test-simverbs: simverbs $(STEP) ## the conformance program on the simulated libibverbs, plain and under the sanitizers
	@$(STEP) "simverbs conformance" sh -c '$(call CONFORM,$(SIM_DIST))'
	@for s in address,undefined thread; do d=$(CACHE)/simverbs-$$s; \
	  $(MAKE) --no-print-directory SIM_DIST=$$d SIM_SAN="-fsanitize=$$s -fno-sanitize-recover=all" simverbs && \
	  $(STEP) "simverbs conformance, sanitizer $$s" sh -c "$(call CONFORM,$$d)" || exit 1; done

# Where the header is missing and we may install it, we do: headers/verbs is only as good as this comparison.
test-verbs-header: $(STEP) ## headers/verbs against the real <infiniband/verbs.h> (installs libibverbs-dev as root on Debian)
	@test -e /usr/include/infiniband/verbs.h || { command -v apt-get >/dev/null && test "$$(id -u)" = 0 && \
	  { apt-get install -y -q libibverbs-dev || { apt-get update -q && apt-get install -y -q libibverbs-dev; }; } >/dev/null; } || \
	  { echo "test-verbs-header: /usr/include/infiniband/verbs.h is missing: apt-get install libibverbs-dev" >&2; exit 1; }
	@$(STEP) -kind gotest "headers/verbs and libibverbs" $(GO) test -count=1 -run Verbs ./headers

.PHONY: simverbs test-simverbs test-verbs-header
