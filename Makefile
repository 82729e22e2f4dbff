# Each recipe is one line; what it does stands in scripts/.

.DEFAULT_GOAL := help
.PHONY: help deps build install-extension run stop psql demo test test-python bench soak test-matrix fuzz lint audit fmt clean

help: ## this list
	@scripts/help

deps: ## install what is missing: PostgreSQL with headers, libclang, cargo-pgrx (apt, cargo)
	@scripts/deps

build: deps ## build the extension and bin/kslate, install the extension into PostgreSQL
	@scripts/build

install-extension: deps ## build and install the extension only
	@scripts/build extension

run: ## all of it: deps, build, a private database, the server on 127.0.0.1:8080 until Ctrl-C
	@scripts/run

stop: ## end a `make run` that runs in the background
	@scripts/stop

psql: ## psql on the database of `make run`
	@scripts/psql

demo: ## an agent dies and its replacement resumes, against the running server
	@scripts/demo

test: build ## every test, on clusters of its own
	@scripts/test

test-python: build ## the tests of the Python package alone
	@scripts/test --python

bench: ## speed against hand-written SQL and peers, report in bench/results/; QUICK=1 is short, ONLY="sql http" a part
	@scripts/bench

soak: build ## the long forms of the tests, for hours; `scripts/soak PART` runs one
	@scripts/soak

test-matrix: deps ## every test on each supported PostgreSQL, fetched where it is missing, and pg_upgrade between them
	@scripts/test-matrix

fuzz: deps ## the parsers under libFuzzer, an hour for all; `scripts/fuzz SECONDS TARGET` for one
	@scripts/fuzz

lint: deps ## rustfmt, clippy with warnings denied, ruff, mypy, pgspot, shellcheck where installed
	@scripts/lint

audit: ## advisories, licences and sources of all dependencies: cargo deny, cargo audit (from GitHub)
	@scripts/audit

fmt: ## format the Rust sources
	@cargo fmt --all

clean: ## remove what was built; the data in KSLATE_DATA stays
	@cargo clean --quiet && rm -rf bin
