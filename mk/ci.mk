# What .ci/run checks beside make test.

# install-missing(programs,packages,name): what is missing is installed where that is possible; else it is said.
define install-missing
lack=; for p in $1; do command -v $$p >/dev/null || lack="$$lack $$p"; done; \
	if [ -z "$$lack" ]; then :; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then $(STEP) "$3" sh -c \
	  'apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install --no-install-recommends -y $2 >/dev/null'; \
	else echo "$3: missing$$lack: install $2" >&2; fi
endef

CI = ci-format ci-regen ci-library ci-arm64 ci-lint test-asan test-race test-simverbs test-verbs-header ci-lab ci-launchers

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

ci-lint: $(STEP)
	@$(STEP) "lint-c" $(MAKE) --no-print-directory lint-c
	@LINT_REQUIRED=1 $(STEP) "lint-go" $(MAKE) --no-print-directory lint-go

# weft run under the launchers themselves: none may be left out here.
LAUNCHER_NEEDS = openmpi-bin mpich slurm-wlm munge libpmix-dev openssh-server openssh-client
LAUNCHERS = /usr/bin/mpirun.openmpi /usr/bin/mpirun.mpich /usr/bin/srun /usr/sbin/slurmctld /usr/sbin/slurmd /usr/sbin/munged /usr/sbin/sshd /usr/bin/ssh \
  $(or $(wildcard /usr/lib/*/pmix2/lib/libpmix.so),libpmix.so)

ci-launchers: $(STEP)
	@$(call install-missing,$(LAUNCHERS),$(LAUNCHER_NEEDS),packages of the launchers)
	@LAUNCHERS_REQUIRED=1 $(STEP) -kind gotest "under the launchers" $(GOTEST) -count=1 -run 'TestOpenMPI|TestMPICH|TestSlurm|TestSSH' ./tools/weft

.PHONY: ci $(CI)
