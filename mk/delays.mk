# The tests with a library in which goroutines start late and threads pause around locks and sends (internal/delays): what then
# fails has so far been lucky. A failure may not come again at once: give RUN, and a higher LEVEL. No part of make test: it takes long.

DELAYS = $(abspath $(CACHE)/delays)

test-delays: $(STEP) ## Go tests and the suite with random pauses around locks, sends and goroutines (LEVEL=1 to 9; RUN=REGEXP)
	@$(STEP) "sources with pauses" $(GO) run ./internal/delays -o $(DELAYS)
	@GOFLAGS="$$GOFLAGS -overlay=$(DELAYS)/overlay.json" $(STEP) "build with pauses" $(GO) run ./internal/link/weftlink -o $(DELAYS)/dist
	@WEFT_TEST_DIST=$(DELAYS)/dist WEFT_TEST_DELAYS=$(or $(LEVEL),1) \
	  $(STEP) -kind gotest -limit 60m "tests with pauses" $(GO) test -timeout 29m \
	    -overlay $(DELAYS)/overlay.json $(if $(RUN),-run '$(RUN)') $(AGAIN) $(SUITE) ./transport/... ./plugin/... ./internal/faults

.PHONY: test-delays
