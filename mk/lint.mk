# The C of the product under every warning that finds something, as errors, and under gcc's analyzer. The warnings are not in
# #cgo lines: a newer compiler must not break a user's build.

LINT_WARN = -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wold-style-definition -Wpointer-arith \
  -Wwrite-strings -Wcast-align -Wformat=2 -Wundef -Wvla -Wredundant-decls -Wnested-externs -Wduplicated-cond \
  -Wduplicated-branches -Wnull-dereference -Wimplicit-fallthrough=5 -Wno-unused-parameter
LINT_INC  = -Iheaders -Iheaders/nccl -Itransport/fastpath -Itransport/record -Itransport/meter -Iplugin -Iguest -Icollnet/kernels -Itools/simverbs -Itools/simverbs/conform -Itools/simgpu/include
# Files that include what cgo writes (_cgo_export.h) can only be compiled by the go command.
LINT_C    = $(sort $(shell grep -L _cgo_export.h $(wildcard compat/*.c guest/*.c collnet/kernels/*.c transport/fastpath/*.c transport/record/*.c transport/meter/*.c transport/tcp/*.c transport/verbs/ibv/*.c transport/comms/*.c plugin/*.c tools/host/*.c tools/simverbs/*.c tools/simverbs/conform/*.c tools/simgpu/cuda/*.c internal/bench/both/*.c internal/bench/events/*.c)))
# Generated tables repeat one pattern; the analyzer has nothing to find there.
LINT_DEEP = $(filter-out compat/zz_% transport/fastpath/zz_%,$(LINT_C))

lint-c: ## the C code under many warnings and gcc's analyzer
	@test -n "$(LINT_C)" || { echo "lint-c: no C files found" >&2; exit 1; }
	@fail=0; for f in $(LINT_C); do $(CC) -std=gnu11 -O2 $(LINT_WARN) $(LINT_INC) -c -o /dev/null $$f || fail=1; done; \
	for f in $(LINT_DEEP); do $(CC) -std=gnu11 -O1 -fanalyzer -Werror $(LINT_INC) -c -o /dev/null $$f || fail=1; done; exit $$fail

# What staticcheck finds in the Go code, and functions that nothing reaches. deadcode does not see calls from C: those of
# zz_exports.go, the functions below, and what these alone call. Where the checkers cannot be had, that is said; with
# LINT_REQUIRED=1, as in CI, it is a failure.
LINT_GO = $(abspath $(CACHE)/lint)
LINT_BY_C = weftCore(Fault|Wants)|weft_(blocking_deadline_ms|blocking_timedout|chain_refused|chain_ended|coll_help)|(net|coll|prof|tune)Impl|done|recovered

lint-go: ## the Go code under staticcheck, and functions that nothing uses
	@mkdir -p $(LINT_GO); $(GO) -C tools/lint mod download >/dev/null 2>&1 || { echo "lint-go: left out: the checkers of tools/lint/go.mod cannot be downloaded" >&2; exit $(if $(LINT_REQUIRED),1,0); }; \
	$(GO) -C tools/lint build -o $(LINT_GO)/ tool || exit 1; fail=0; $(LINT_GO)/staticcheck ./... || fail=1; \
	$(LINT_GO)/deadcode -test ./... >$(LINT_GO)/out || fail=1; \
	if grep -Ev '^plugin/zz_exports\.go:|^(plugin|transport/comms)/.*: unreachable func: ($(LINT_BY_C))$$' $(LINT_GO)/out; then fail=1; fi; exit $$fail

.PHONY: lint-c lint-go
