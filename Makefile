# weft. `make run` builds everything and moves verified data between ranks; `make test` passes the tests; `make help` lists the rest.
# Needs Linux, Go, gcc and make. Never calls go mod tidy or go mod download.

SHELL := /bin/sh
.SUFFIXES:
.DELETE_ON_ERROR:
.DEFAULT_GOAL := all

GO    ?= go
CC    ?= gcc
DIST  ?= dist
CACHE := .cache

# Compiled without the path of the tree: tests and CI make copies of it, and find in Go's cache what was compiled here.
export GOFLAGS := $(strip -trimpath $(filter-out -trimpath,$(GOFLAGS)))

all: dist ## build the library, its links, weft and weft-host into dist/lib and dist/bin

include mk/build.mk mk/test.mk mk/sanitize.mk mk/delays.mk mk/lint.mk mk/bench.mk mk/packages.mk mk/release.mk mk/site.mk mk/ci.mk
-include mk/fast.mk mk/simverbs.mk mk/lab.mk mk/arm64.mk mk/nccl.mk

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z][a-z-]*:.*## /{printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

clean: ## remove what was built
	rm -rf $(DIST) $(CACHE)

.PHONY: all help clean
