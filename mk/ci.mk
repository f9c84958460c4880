# What .ci/run checks beside make test.

CI = ci-format ci-regen ci-library ci-arm64 ci-lint test-asan test-race test-simverbs test-verbs-header ci-lab

ci: $(CI)

ci-format: $(STEP)
	@$(STEP) "gofmt" sh -c 'out=$$(gofmt -l $$(git ls-files "*.go" | grep -v /testdata/)); test -z "$$out" || { echo "not formatted: $$out"; exit 1; }'

# Delete what is generated, generate, and compare with what is committed: nothing may be edited by hand or left behind.
ci-regen: $(STEP)
	@$(STEP) "fresh regeneration" sh -c 'dir=$$(mktemp -d) && trap "rm -rf $$dir" EXIT && git clone -q . $$dir/weft && cd $$dir/weft && \
	  git ls-files | grep -E "(^|/)zz_" | xargs rm -f && $(GO) run ./gen && git add -A && git diff --cached --exit-code --stat'

# The library that is shipped: symbols, NEEDED, glibc versions; twice the same bytes from two folders.
ci-library: $(STEP)
	@$(STEP) "reproducible library" sh -c 'dir=$$(mktemp -d) && trap "rm -rf $$dir" EXIT && git clone -q . $$dir/a && git clone -q . $$dir/other && \
	  for d in a other; do (cd $$dir/$$d && $(GO) run ./internal/link/weftlink -o dist) || exit 1; done && \
	  cmp $$dir/a/dist/lib/libnccl-net-weft.so $$dir/other/dist/lib/libnccl-net-weft.so'

# No cross compiler is assumed: the packages without C must compile and vet for arm64, layout assertions included.
ci-arm64: $(STEP)
	@$(STEP) "arm64" env GOARCH=arm64 CGO_ENABLED=0 $(GO) vet ./abi/... ./collnet/... ./profiler/... ./headers/... ./gen/... ./transport/wire/... ./transport/rdma/... ./internal/knob/... ./tools/weft/...

ci-lint: $(STEP)
	@$(STEP) "lint-c" $(MAKE) --no-print-directory lint-c

.PHONY: ci $(CI)
