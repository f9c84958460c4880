# What is given away: .deb, .rpm and .tar.gz of both architectures, the list of what is in them, and checksums, in dist/packages. The
# one that is not this machine's is cross-compiled: gcc-aarch64-linux-gnu or gcc-x86-64-linux-gnu. The same commit gives the same bytes.

PACK_OUT   ?= $(DIST)/packages
PACK_ARCHS ?= amd64 arm64
PACK_TREE   = $(abspath $(CACHE)/packages)
PACK_CC     = $(if $(filter $1,$(shell $(GO) env GOHOSTARCH)),$(CC),$(if $(filter arm64,$1),aarch64-linux-gnu-gcc,x86_64-linux-gnu-gcc))

packages: ## .deb, .rpm, .tar.gz, SBOM and checksums of amd64 and arm64 (PACK_ARCHS) into dist/packages
	@rm -rf $(PACK_OUT) $(PACK_TREE) && mkdir -p $(PACK_OUT) $(PACK_TREE)/pages/man
	@$(GO) build -o $(CACHE)/weftlink ./internal/link/weftlink && $(GO) build -o $(CACHE)/weft-pages ./tools/weft
	@SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) $(CACHE)/weft-pages man $(PACK_TREE)/pages/man
	@for s in bash:weft.bash zsh:_weft fish:weft.fish; do $(CACHE)/weft-pages completion $${s%:*} >$(PACK_TREE)/pages/$${s#*:} || exit 1; done
	@$(call alive,building what makes packages,$(GO) -C tools/packages test -count=1 . && $(GO) -C tools/packages build -o $(abspath $(CACHE))/make-packages .)
	@$(foreach a,$(PACK_ARCHS),$(call pack,$a) &&) cd $(PACK_OUT) && sha256sum * >SHA256SUMS

# pack(architecture)
pack = command -v $(call PACK_CC,$1) >/dev/null || { echo "make packages: $(call PACK_CC,$1) is missing: install gcc-$(if $(filter arm64,$1),aarch64,x86-64)-linux-gnu and libc6-dev-$1-cross, or say PACK_ARCHS=$(filter-out $1,$(PACK_ARCHS))" >&2; exit 1; }; \
	($(call alive,building for $1,GOARCH=$1 CC=$(call PACK_CC,$1) $(CACHE)/weftlink -o $(PACK_TREE)/$1)) && \
	$(CACHE)/make-packages -dist $(PACK_TREE)/$1 -pages $(PACK_TREE)/pages -o $(PACK_OUT) -arch $1 \
	  -version "$$($(CACHE)/weft-pages version | sed 's/^weft \([^ ,]*\).*/\1/')" -epoch "$$(git log -1 --format=%ct)"

test-packages: ## install, use and remove the packages in a clean Debian of each architecture (root, mmdebstrap, for arm64 qemu-user-static, arch-test)
	@for a in $(PACK_ARCHS); do tools/packages/try.sh $(PACK_OUT) $$a || exit 1; done

test-image: ## the image of docs/examples/kubernetes/Dockerfile from the archive of make packages: build it, run it as an init container, use what it copied (root, buildah, mmdebstrap)
	@tools/packages/image.sh $(PACK_OUT) $$($(GO) env GOHOSTARCH)

test-glibc: $(STEP) ## the archive of make packages on a glibc built from GLIBC_SRC=TREE, a checkout of glibc-2.28: the oldest it runs on (root, bison, gawk)
	@test -n "$(GLIBC_SRC)" || { echo "make test-glibc: say GLIBC_SRC=TREE: git clone -b glibc-2.28 of glibc's repository" >&2; exit 1; }
	@$(STEP) "the archive on an old glibc" tools/packages/oldest.sh "$$(ls $(PACK_OUT)/weft-*-linux-$$($(GO) env GOHOSTARCH).tar.gz 2>/dev/null)" "$(GLIBC_SRC)" $(abspath $(CACHE)/glibc)

.PHONY: packages test-packages test-image test-glibc
