# The library under the address sanitizer (shared, in an instrumented host) and under the race detector (whole inside the host,
# the only form in which the race detector works in a C process).

test-asan: $(STEP) ## the suite with library and host under the address sanitizer
	@$(STEP) "build under ASan" $(GO) run ./internal/link/weftlink -mode asan -o $(CACHE)/asan
	@WEFT_TEST_DIST=$(abspath $(CACHE)/asan) ASAN_OPTIONS=detect_leaks=0:abort_on_error=1 \
	  $(STEP) -kind gotest "suite under ASan" $(GOTEST) $(AGAIN) $(SUITE)

test-race: $(STEP) ## Go tests under the race detector, and the suite with the library inside the host
	@$(STEP) "build under the race detector" $(GO) run ./internal/link/weftlink -mode race -o $(CACHE)/race
	@WEFT_TEST_DIST=$(abspath $(CACHE)/race) GORACE=halt_on_error=1 \
	  $(STEP) -kind gotest "Go tests and suite under the race detector" $(GOTEST) -race $(AGAIN) ./transport $(SUITE) ./transport/... ./plugin/... ./internal/knob/...

.PHONY: test-asan test-race
