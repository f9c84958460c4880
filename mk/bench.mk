# Figures, each beside its yardstick in the same run.

bench: all ## bandwidth, latency, connects, memory: weft beside a plain C loop (VS=OTHER.so: and beside another plugin)
	@$(GO) run ./internal/bench -dist $(DIST) $(if $(VS),-vs $(VS))

.PHONY: bench
