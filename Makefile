# The few commands of this repository. `make help` lists them; everything else is cargo.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help up down interpreter setup guest program binary build test test-full test-e2b test-daytona test-sdk conformance-e2b fuzz bench clean

TARGET := x86_64-unknown-linux-gnu
TARGET_DIR := $(or $(CARGO_TARGET_DIR),target)

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

up: ## everything: install, build, make the template, start the server, run a first sandbox (root)
	@scripts/up

down: ## stop the server, end every sandbox, unmount everything (root)
	@scripts/down

interpreter: ## make the template code-interpreter-v1 on the server that runs here (some minutes, once)
	@eval "$$(bin/belljar env)"; bin/belljar template build --shared code-interpreter-v1 templates/code-interpreter-v1.toml

setup: ## install what is missing on this machine, also for tests and benchmarks (Debian, root)
	@scripts/setup --for-tests --with-postgresql

# Static on the gnu target, so that no further toolchain is needed. --target keeps crt-static away from build scripts and macros.
guest: ## build the static agent: target/guest/belljar-guest
	RUSTFLAGS="-C target-feature=+crt-static" cargo build --locked --package belljar-guest --profile guest --target $(TARGET)
	@install -D -m 0755 $(TARGET_DIR)/$(TARGET)/guest/belljar-guest target/guest/belljar-guest
	@printf 'guest: target/guest/belljar-guest, %d kB\n' $$(( $$(stat -c %s target/guest/belljar-guest) / 1024 ))

program:
	cargo build --locked --package belljar --profile dist

binary: guest program ## build the program and its agent: bin/belljar, bin/belljar-guest
	@install -D -m 0755 $(TARGET_DIR)/dist/belljar bin/belljar.new && mv bin/belljar.new bin/belljar
	@install -D -m 0755 target/guest/belljar-guest bin/belljar-guest.new && mv bin/belljar-guest.new bin/belljar-guest

build: guest ## build everything, optimised
	cargo build --locked --workspace --release

test: ## everything that must hold, quick slice (root)
	@scripts/test

test-full: ## the same with the full counts: 1,000 creates per class, 200 kills, 1 GiB files (root)
	@BELLJAR_FULL=1 scripts/test

test-e2b: ## our programs with E2B's own SDKs, old and new, against the server that runs here
	@scripts/test-e2b

test-daytona: ## our programs with Daytona's own SDKs, old and new, against the server that runs here
	@scripts/test-daytona

test-sdk: ## our Python SDK against the server that runs here
	@scripts/test-sdk

conformance-e2b: ## E2B's own test suites from a checkout: make conformance-e2b SUITES=<checkout>
	@scripts/conformance-e2b "$(SUITES)"

fuzz: ## feed what a hostile guest can send to the code that reads it, 30 s a target (nightly compiler, cargo-fuzz)
	@scripts/fuzz

bench: guest ## measure against bwrap, runsc and crun; writes bench/results/ (root)
	cargo run --locked --release --package belljar-testkit --bin bench
	cargo run --locked --release --package belljar-testkit --bin state_bench
	cargo bench --locked --package belljar-policy
	cargo bench --locked --package belljar-audit --bench record
	cargo bench --locked --package belljar-testkit --bench boundary
	cargo build --locked --release --package belljar --package belljar-testkit --bins
	BELLJAR_PROGRAMS=$(TARGET_DIR)/release scripts/bench-e2b

clean: ## remove what was built and the tests' state
	@if mountpoint -q .cache/lab/pool; then cargo run --quiet --package belljar-testkit --bin lab -- close; fi
	cargo clean
	rm -rf --one-file-system .cache target/guest
