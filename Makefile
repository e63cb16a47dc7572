# Everything that is built, installed or written goes into the state directory, except what the distribution installs,
# the chart library beside the pages that use it, and what checkouts share: ~/.cache/cliffwatch (setup/common.sh).
STATE ?= .cliffwatch
override STATE := $(abspath $(STATE))
export STATE
SHARED := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/cliffwatch
export MYPY_CACHE_DIR := $(SHARED)/mypy
export RUFF_CACHE_DIR := $(STATE)/cache/ruff
export HYPOTHESIS_STORAGE_DIRECTORY := $(STATE)/cache/hypothesis
# Thousands of processes of the tests would compile all that they import.
unexport PYTHONDONTWRITEBYTECODE

BIN := $(STATE)/venv/bin
CLIFFWATCH := CLIFFWATCH_STATE_DIRECTORY=$(STATE) $(BIN)/cliffwatch
UV_COMPILE = $(STATE)/lock/bin/uv pip compile pyproject.toml --extra build --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-header --quiet

.DEFAULT_GOAL := help
.PHONY: help run test up down watchers binaries wheel deb release bench lint format assets dashboards pictures openapi docs lock clean setup setup-test test-all test-real test-timing test-binaries gate setup-real test-python test-rust

help: ## say what there is
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: setup watchers binaries ## the drill: a small drive ages, latency falls off a cliff, and detection and alerting report it
	@setup/demonstration

test: setup-test test-binaries ## install what is missing; every check, and what must hold before a change is merged
	@$(BIN)/python -m testkit.suite gate

test-real: setup-real binaries watchers ## the rest on real components: long, in containers, or machine-wide
	@$(BIN)/python -m testkit.suite real

test-timing: setup-real test-binaries watchers ## what compares times, one at a time; leave the machine alone meanwhile
	@$(BIN)/python -m testkit.suite timing

test-all: ## every check and every test
	@$(MAKE) --no-print-directory test
	@$(MAKE) --no-print-directory test-real
	@$(MAKE) --no-print-directory test-timing

gate: ## what a merge asks of HEAD, in a clone of its own; .cliffwatch/passed/TREE says that it passed
	@setup/gate

up: setup watchers binaries ## start the service and its watchers on loopback and leave them running
	@$(CLIFFWATCH) up
	@echo 'For this shell:'
	@echo '  export PATH=$(BIN):$$PATH CLIFFWATCH_STATE_DIRECTORY=$(STATE)'
	@echo 'Then:'
	@echo '  cliffwatch run start quick-soak --target directory:/path/to/an/empty/directory --watch'
	@echo '  cliffwatch --help'

down: ## stop the service and its watchers; runs go on
	@if [ -x $(BIN)/cliffwatch ]; then $(CLIFFWATCH) down; else echo "nothing is installed, so nothing is running"; fi

bench: setup-test watchers binaries ## print the figures that docs/figures.md states
	@$(BIN)/python -m bench

watchers: ## build the block-layer probe where it can run; two minutes the first time
	@setup/watchers

binaries: ## build cliffwatch-load and cliffwatch-drive; some minutes the first time
	@setup/binaries release

test-binaries:
	@setup/binaries

wheel: setup binaries ## a wheel that installs without a compiler, into .cliffwatch/dist (docs/install.md)
	@setup/wheel $(ARCHITECTURE)

deb: setup ## the Debian package of the watchers for broker hosts, into .cliffwatch/dist (docs/broker-hosts.md)
	@setup/deb

release: setup binaries ## wheel, images, SBOM, notes and checksums of this version, into .cliffwatch/dist (RELEASING.md)
	@setup/release

lint: setup-test ## format, lint, floors and types of the Python parts
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/lint-imports --no-logo --cache-dir $(STATE)/cache/floors
	@mkdir -p $(SHARED)
	flock $(SHARED)/mypy.lock $(BIN)/mypy

test-python: setup-real test-binaries watchers ## all Python tests, one after the other; PYTEST="-k words" chooses
	$(BIN)/pytest -o cache_dir=$(STATE)/cache/pytest $(PYTEST)

test-rust: setup-test ## format, lint and tests of the Rust parts
	@setup/rust check gate

format: setup-test ## write the format that lint asks for
	$(BIN)/ruff format
	$(BIN)/ruff check --fix
	@if [ -f Cargo.toml ] && command -v rustfmt >/dev/null; then cargo fmt --all; fi

assets: ## fetch the chart library
	@setup/assets

dashboards: setup-test ## write the dashboards' JSON anew
	$(BIN)/python -m dashboards.builder

pictures: setup-test ## write the pictures of README.md and docs/ anew: make pictures RUN=.cliffwatch/runs/ID
	$(BIN)/python -m bench.pictures $(RUN)

openapi: setup-test ## write the published schemas of the API and of report.json anew
	$(BIN)/python -m cliffwatch.server.openapi
	$(BIN)/python -m cliffwatch.report.schema

docs: setup-test ## write docs/cli.md anew
	$(BIN)/python -m cliffwatch.cli.reference > docs/cli.md

lock: ## lock the newest Python packages that pyproject.toml allows
	@python3 -m venv $(STATE)/lock && $(STATE)/lock/bin/pip install --quiet uv
	$(UV_COMPILE) --output-file requirements.txt
	$(UV_COMPILE) --extra test --output-file requirements-test.txt

clean: down ## remove what was built and installed here; journals, the database and ~/.cache/cliffwatch stay
	rm -rf $(STATE)/venv $(STATE)/programs $(STATE)/lock $(STATE)/target $(STATE)/cache $(STATE)/stamps $(STATE)/ebpf $(STATE)/kernel
	rm -rf service/*.egg-info service/cliffwatch/web/assets/node_modules

setup:
	@setup/install run
	@setup/python run
	@setup/assets

setup-test:
	@setup/install test
	@setup/python test
	@setup/assets
	@setup/broker

setup-real: setup-test
	@setup/kernel
