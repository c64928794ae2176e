# Whittle. The main job is `make demo`, the tests are `make test`; both need rustup and nothing else.
export PATH := $(PATH):$(HOME)/.cargo/bin
DENY := $(shell PATH="$(PATH)" command -v cargo-deny 2>/dev/null)
DEMO ?= examples/inflate

.PHONY: help demo test storms clusters e2e bed bench check deny fmt goldens

help: ## what there is to make
	@grep -E '^[a-z0-9]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 12

demo: ## tell the inflate story with real types and prices (DEMO=examples/teams for another)
	@cargo build --release --locked -p whittle
	@cargo run --release --locked -q -p whittle -- simulate $(DEMO)

test: ## every test of the workspace: crates, house rules, stories
	cargo test --workspace --locked

clusters: ## 10,000 random clusters with every constraint, broken seeds named (CLUSTERS=n FIRST=seed for others)
	@cargo test --release --locked -q -p whittle-engine --test clusters -- --ignored --nocapture many_clusters

storms: ## ten thousand storms over the simulated cluster (STORMS=N for as many); the last line counts seeds and breaks
	@STORMS=$${STORMS:-10000} cargo test --release --locked -q -p whittle-sim --test sim storms::storms -- --nocapture

e2e: ## the stories on real servers (STORIES="inflate crash" for some); needs go and python3
	@cargo run --locked -q -p whittle-e2e -- run $(STORIES)

bed: ## start those servers and leave them running; `cargo run -p whittle-e2e -- down` ends them
	@cargo run --locked -q -p whittle-e2e -- up

bench: ## the benchmarks, one line a result
	@cargo run --release --locked -q -p whittle-bench

check: ## what CI runs: formatting, lints, tests, dependencies
	.ci/run

deny: ## licences, bans, sources and advisories of the dependencies (cargo install --locked cargo-deny)
ifeq ($(DENY),)
	@echo "cargo-deny is not installed: dependencies not checked (cargo install --locked cargo-deny)"
else
	cargo deny --locked --log-level warn check licenses bans sources
	@if git ls-remote -q --exit-code https://github.com/RustSec/advisory-db HEAD >/dev/null 2>&1; then \
	    cargo deny --locked --log-level warn check advisories; \
	else \
	    echo "the advisory database cannot be reached: advisories not checked"; \
	fi
endif

fmt: ## format all sources
	cargo fmt --all

goldens: ## write the golden answers anew; read the difference before committing it
	UPDATE_GOLDENS=1 cargo test --locked -p whittle-tests --test stories
