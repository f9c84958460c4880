# The tests. Each step runs under internal/check, which counts; the counts of all steps are added up at the end.

STEP    = $(CACHE)/check
# A package ends itself before its step is ended, which shows where it stood. Both are for what hangs on a machine however slow.
# Not vetted here: test-vet does that, once.
GOTEST  = $(GO) test -vet=off -timeout 38m
# What starts hosts with the built library in them, and so runs again under other conditions; not what tests conform itself, nor the
# pages, nor C that test-c has under sanitizers. The conditions of a host's process (TABLES) are for what calls the tables, sanitizers
# (SUITE) for weft's commands too.
AGAIN   = -count=1 -skip '^(TestBroken|TestGood|TestPages|TestDoctorOfPaths|TestStress)$$'
TABLES  = ./lib/... ./internal/release/... ./internal/conform/... ./internal/fuzz/...
SUITE   = $(TABLES) ./tools/weft/...
# In this order what waits (transport, conform, weft's commands) runs beside what works.
ORDER   = ./transport ./collnet/... ./gen/... ./internal/conform ./tools/weft ./...
RESULTS = $(abspath $(CACHE)/results)
STEPS   = test-regen test-vet test-exports test-unit test-c test-preempt test-beside

test: $(STEP) ## regeneration check, vet, unit tests, conformance, many processes, the C parts under sanitizers
ifdef WEFT_RESULTS
	@$(MAKE) --no-print-directory -k $(STEPS)
else
	@rm -f $(RESULTS); export WEFT_RESULTS=$(RESULTS); \
	$(MAKE) --no-print-directory -k $(STEPS); $(STEP) -summary -status $$?
endif

$(STEP): FORCE
	@$(call alive,building what counts the tests,$(GO) build -o $@ ./internal/check)
FORCE:

test-regen: $(STEP)
	@$(STEP) "regeneration" $(MAKE) --no-print-directory regen-check

test-vet: $(STEP)
	@$(STEP) "go vet" $(GO) vet ./...

test-exports: $(STEP)
	@$(call alive,building the vet of exported functions,$(GO) build -o $(CACHE)/weftvet ./internal/exportvet/weftvet)
	@$(STEP) "vet of exported functions" $(GO) vet -vettool=$(abspath $(CACHE)/weftvet) ./...

# TestStress is a short test-c, for those who call go test by hand.
test-unit: $(STEP) ## all Go tests: unit, fuzz seeds, the generator's proofs, conformance, many processes
	@$(STEP) -kind gotest "tests" $(GOTEST) -skip '^TestStress$$' $(ORDER)

test-invented: $(STEP) ## every test, in a copy of the tree with two made-up releases of NCCL: what only the next header would break
	@$(STEP) -kind gotest -limit 60m "every test with made-up releases" $(GO) test -timeout 58m -count=1 -run TestInventedReleases/two ./gen/proof -whole

test-c: $(STEP)
	@$(STEP) "C parts under TSan, ASan and UBSan" $(MAKE) --no-print-directory -j2 stress

test-preempt: $(STEP)
	@GODEBUG=asyncpreemptoff=0 $(STEP) -kind gotest "suite with asynchronous preemption" $(GOTEST) -parallel 4 $(AGAIN) $(TABLES)

test-beside: $(STEP)
	@mkdir -p $(CACHE)/second
	@$(STEP) "build a second Go library" $(GO) build -trimpath -buildvcs=false -buildmode=c-shared -o $(CACHE)/second/libsecond.so ./internal/link/second
	@WEFT_HOST_FIRST=$(abspath $(CACHE)/second/libsecond.so) $(STEP) -kind gotest "suite beside a second Go library" $(GOTEST) -parallel 4 $(AGAIN) $(TABLES)

# TIME is the whole of it; what is run is copied first, so that the tree may change meanwhile.
fuzz: ## fuzz table calls and every decoder for TIME (1m) in all; ONLY=tables or decoders; SEED=N plays a failed round again
	@nice $(GO) run ./internal/fuzz -time $(or $(TIME),1m) -only "$(ONLY)" -seed $(or $(SEED),-1) -calls $(or $(CALLS),100000)

# The release that make nccl-host has built is one of the programs, if NCCL_SRC names its tree.
faults-campaign: dist simverbs $(if $(NCCL_SRC),nccl-host) ## N (200) faults at random, from SEED, and whether weft names them right and soon; CLEAN=1h: none, on busy cores; NCCL_SRC=TREE: real NCCL too; ARGS='-v -kinds "slow link"'
	@$(call alive,building the campaign,$(GO) build -o $(CACHE)/faults-campaign ./internal/faults/campaign)
	@WEFT_TEST_DIST=$(abspath $(DIST)) $(if $(NCCL_SRC),WEFT_TEST_NCCL=$$($(call NCCL_MAKE,$(firstword $(NCCL_TREES))) where)) \
	  $(CACHE)/faults-campaign -n $(or $(N),200) -seed $(or $(SEED),1) $(if $(CLEAN),-clean $(CLEAN)) $(ARGS)

.PHONY: test $(STEPS) test-invented fuzz faults-campaign FORCE
