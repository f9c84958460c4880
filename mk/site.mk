# The documents as a site.

SITE ?= $(DIST)/site

site: ## docs/ as a site, into dist/site; a link that leads nowhere is an error (the generator, Hugo, is fetched as a Go module)
	@mkdir -p $(CACHE) && $(call alive,building the generator,$(GO) -C tools/site build -o $(abspath $(CACHE))/hugo github.com/gohugoio/hugo)
	@$(CACHE)/hugo build --source tools/site --destination $(abspath $(SITE)) --cleanDestinationDir --noBuildLock --quiet && echo $(SITE)/index.html

.PHONY: site
