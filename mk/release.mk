# What a released version promised, and how one is made.

# Since BASE, a tag, no symbol may be gone from the library and no fingerprint from the headers (but of versions that BASE did not have).
released-check: ## fail where a symbol or a field of the release BASE (a tag; default: the newest) is gone or another
	@base='$(BASE)'; [ -n "$$base" ] || base=$$(git describe --tags --abbrev=0 --match 'v[0-9]*' $$(git describe --tags --exact-match --match 'v[0-9]*' >/dev/null 2>&1 && echo HEAD^ || echo HEAD) 2>/dev/null) || { echo "released-check: nothing is released yet: say BASE=COMMIT to compare with one" >&2; exit 0; }; \
	git rev-parse -q --verify "$$base^{commit}" >/dev/null || { echo "released-check: there is no commit $$base" >&2; exit 1; }; \
	mkdir -p $(CACHE) && git show "$$base:lib/zz_exports.map" | grep -o '[a-zA-Z]*_v[0-9]*;' | sort >$(CACHE)/released.symbols && \
	git show "$$base:headers/LOCK" | grep -v '^#' | sort >$(CACHE)/released.lock && \
	{ [ -s $(CACHE)/released.symbols ] && [ -s $(CACHE)/released.lock ] || { echo "released-check: $$base has no lib/zz_exports.map and headers/LOCK to compare with" >&2; exit 1; }; } && \
	grep -o '[a-zA-Z]*_v[0-9]*;' lib/zz_exports.map | sort | comm -23 $(CACHE)/released.symbols - >$(CACHE)/released.gone && \
	grep -v '^#' headers/LOCK | sort | comm -23 $(CACHE)/released.lock - >>$(CACHE)/released.gone && \
	if [ -s $(CACHE)/released.gone ]; then echo "released-check: since $$base these are gone, or another:" >&2; cat $(CACHE)/released.gone >&2; exit 1; fi; \
	echo "released-check: all $$(wc -l <$(CACHE)/released.symbols) symbols and $$(wc -l <$(CACHE)/released.lock) fingerprints of $$base are as they were"

# The steps before and after it are in docs/release.md.
release: ## the files of the release that this commit is tagged as, checked, into dist/release (KEY=a GnuPG key: signed)
	@KEY='$(KEY)' tools/packages/release.sh $(DIST)/release

.PHONY: released-check release
