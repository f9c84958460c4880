# What is built, and how it is generated. How the library is linked stands in internal/link alone.

# alive(what,command): the command, and a line now and then: the go command is silent while it compiles.
alive = echo "$1" >&2; (while sleep 9 </dev/null >/dev/null 2>&1; do echo "... $1" >&2; done) & beat=$$!; trap 'kill $$beat 2>/dev/null' EXIT; $2

dist:
	@$(call alive,building the library and the programs into $(DIST),$(GO) run ./internal/link/weftlink -o $(DIST))

run: all ## build, then move verified data between three ranks through every table
	@$(DIST)/bin/weft run --local --abi old --sizes 8,64K,4M
	@$(DIST)/bin/weft run --local

regen: ## write the generated files anew from headers/ and gen/rules
	@$(GO) run ./gen

regen-check: ## fail when a generated file differs from what the generator would write
	@$(GO) run ./gen -check

drop: ## import a header or a folder of headers: make drop SRC=PATH
	@test -n "$(SRC)" || { echo "make drop: say where the header or headers are: make drop SRC=PATH" >&2; exit 2; }
	@$(GO) run ./gen drop "$(SRC)"

.PHONY: dist run regen regen-check drop
