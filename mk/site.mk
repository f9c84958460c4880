# The documents as a site, and their manifests against the types of Kubernetes: both take many modules and are no part of .ci/run.

SITE ?= $(DIST)/site

site: ## docs/ as a site, into dist/site; a link that leads nowhere is an error (the generator, Hugo, is fetched as a Go module)
	@mkdir -p $(CACHE) && $(call alive,building the generator,$(GO) -C tools/site build -o $(abspath $(CACHE))/hugo github.com/gohugoio/hugo)
	@$(CACHE)/hugo build --source tools/site --destination $(abspath $(SITE)) --cleanDestinationDir --noBuildLock --quiet && echo $(SITE)/index.html

test-manifests: $(STEP) ## the manifests of docs/examples, strictly decoded and judged as their controllers do (190 MiB of Go modules the first time)
	@cd tools/manifests && $(abspath $(STEP)) -kind gotest "manifests" $(GO) test -count=1 .

.PHONY: site test-manifests
