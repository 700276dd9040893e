# `make run` and `make test` are all a newcomer needs; each installs what it needs first.

# Set on the command line, as in `make run PORT=9000`; not taken from the environment, where HOST
# often means something else.
HOST = 127.0.0.1
PORT = 8000
DATABASE = sqlite:///adk-stream.db
AGENT =
MODEL =
PYTHON = python3
# Tests wait for each other's processes more than they compute: one more than small machines have cores.
WORKERS = 3
KILLS = 5000
CUTS = 10000
CYCLES = 1000
SEED =

BIN := .venv/bin
SUDO := $(shell [ "$$(id -u)" = 0 ] || echo sudo)
NODE_TESTS := tests/conformance
TEXT_CLIENTS := tests/text_clients
PAGES := tests/clients
CLIENT := client/transport
UI := client/ui
GENERATED := tests/generated
# Stamps live inside what they vouch for, so that deleting it deletes them too.
RUNS := .venv/.stamp-run
DEVELOPS := .venv/.stamp-dev
NODE_READY := $(NODE_TESTS)/node_modules/.stamp
TEXT_READY := $(TEXT_CLIENTS)/node_modules/.stamp
PAGES_READY := $(PAGES)/node_modules/.stamp
PAGES_BUILT := $(PAGES)/dist/.stamp
CLIENT_READY := $(CLIENT)/node_modules/.stamp
CLIENT_BUILT := $(CLIENT)/dist/.stamp
UI_READY := $(UI)/node_modules/.stamp
GENERATED_READY := $(GENERATED)/node_modules/.stamp
GENERATOR_READY := $(GENERATED)/.venv/.stamp
AG_UI := benchmarks/.peers/ag-ui-adk/.stamp
PYDANTIC_AI := benchmarks/.peers/pydantic-ai/.stamp
VERCEL_AI := benchmarks/.peers/vercel-ai/.stamp
NPM_CI := npm ci --no-audit --no-fund --loglevel=error
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --constraint constraints.txt

.DEFAULT_GOAL := help
.PHONY: help install postgres chromium run test check fmt lint types golden ui screenshots faults bench build clean

help: ## list what can be made
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-11s %s\n", $$1, $$2}'

install: $(DEVELOPS) $(NODE_READY) $(TEXT_READY) $(PAGES_BUILT) $(CLIENT_BUILT) $(UI_READY) $(GENERATED_READY) $(GENERATOR_READY) postgres chromium ## install everything for work on the project

# Tests start their own server; only its programs must be there.
postgres:
	@command -v initdb >/dev/null || ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 \
	  || { $(SUDO) apt-get update --quiet && $(SUDO) apt-get install --yes --quiet postgresql; }

chromium:
	@command -v chromium >/dev/null \
	  || { $(SUDO) apt-get update --quiet && $(SUDO) apt-get install --yes --quiet chromium fonts-noto-cjk; }

run: $(RUNS) ## serve the demo, or AGENT=...; also HOST= PORT= DATABASE= MODEL=
	$(BIN)/adk-stream serve $(AGENT) --host $(HOST) --port $(PORT) --database '$(DATABASE)' $(MODEL:%=--model %)

test: install lint types ## check everything: style, types, layers, tests
	cd $(CLIENT) && npm test --silent
	cd $(UI) && npm test --silent
	$(BIN)/python -m pytest --numprocesses $(WORKERS) --dist loadfile

check: test ## what CI runs

fmt: $(DEVELOPS) ## format the code and sort its imports
	$(BIN)/ruff check --fix --quiet .
	$(BIN)/ruff format .

lint: $(DEVELOPS) ## check style and layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-logo

types: $(DEVELOPS) $(CLIENT_READY) $(UI_READY) $(PAGES_READY) ## check types
	$(BIN)/mypy
	cd $(CLIENT) && npm run --silent types
	cd $(UI) && npm run --silent types
	cd $(PAGES) && npm run --silent types

golden: install ## write the golden files anew; look at the difference before you commit it
	$(BIN)/python -m pytest tests/golden tests/stories/test_routes.py tests/wire/test_chunk_schema.py --golden-update

# The page is committed as it is built, so that an installation needs no Node.
ui: $(UI_READY) ## build the page into the package
	cd $(UI) && npm run --silent build

screenshots: install ## look at the page: write docs/screenshots
	PYTHONPATH=tests $(BIN)/python -m browser.screenshots docs/screenshots

faults: install ## kill servers by chance; KILLS=5000 CUTS=10000 CYCLES=1000, SEED= to repeat; writes docs/reference/faults.md
	PYTHONPATH=src:tests $(BIN)/python -m faults.campaign --kills $(KILLS) $(SEED:%=--seed %) \
	  --page docs/reference/faults.md
	ADK_STREAM_CUTS=$(CUTS) $(BIN)/python -m pytest tests/cluster/test_cuts.py
	ADK_STREAM_CYCLES=$(CYCLES) $(BIN)/python -m pytest tests/faults/test_leaks.py

# Redis is only there to compare with: its client stays out of .venv.
bench: $(DEVELOPS) $(AG_UI) $(PYDANTIC_AI) $(VERCEL_AI) postgres ## measure and write docs/benchmarks.md; also BENCH='token-log --rounds 9'
	@command -v redis-server >/dev/null \
	  || { $(SUDO) apt-get update --quiet && $(SUDO) apt-get install --yes --quiet redis-server; }
	@ls benchmarks/.packages/redis >/dev/null 2>&1 \
	  || $(PIP) --target benchmarks/.packages 'redis[hiredis]==8.1.0'
	PYTHONPATH=src:tests:. $(BIN)/python -m benchmarks $(BENCH) --page docs/benchmarks.md

# Other servers to measure against, each with a Python of its own.
$(AG_UI): PEER = ag-ui-adk==0.11.0 google-adk==2.13.0
$(PYDANTIC_AI): PEER = pydantic-ai-slim==2.66.0 starlette==1.10.0
$(AG_UI) $(PYDANTIC_AI):
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip --disable-pip-version-check install --quiet $(PEER) uvicorn==0.54.0
	@touch $@

# It needs a newer Python than we do. One that pyenv has is often not found by its name.
$(VERCEL_AI):
	@for each in $(PYTHON) python3.14 python3.13 python3.12 $(HOME)/.pyenv/versions/3.1[2-9]*/bin/python; do \
	  "$$each" -c 'import sys; sys.exit(sys.version_info < (3, 12))' 2>/dev/null || continue; \
	  "$$each" -m venv $(@D) \
	    && $(@D)/bin/python -m pip --disable-pip-version-check install --quiet ai==0.8.0 starlette==1.10.0 uvicorn==0.54.0 \
	    && touch $@; \
	  exit; \
	done; \
	echo "Vercel's ai for Python is not measured: it needs Python 3.12 or newer." >&2

build: $(DEVELOPS) ## build the sdist and the wheel into dist/
	$(BIN)/python -m build

clean: ## remove caches and what was built; .venv stays
	rm -rf dist $(CLIENT)/dist $(PAGES)/dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis .coverage .faults
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo 'Python 3.11 or newer is needed: make $(MAKECMDGOALS) PYTHON=python3.11' >&2; exit 1; }
	$(PYTHON) -m venv .venv

$(RUNS): pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) --editable .
	@touch $@

$(DEVELOPS): pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) --editable '.[dev]'
	@touch $@ $(RUNS)

$(NODE_READY): $(NODE_TESTS)/package.json $(NODE_TESTS)/package-lock.json
	cd $(NODE_TESTS) && $(NPM_CI)
	@touch $@

$(TEXT_READY): $(TEXT_CLIENTS)/package.json $(TEXT_CLIENTS)/package-lock.json
	cd $(TEXT_CLIENTS) && $(NPM_CI)
	@touch $@

$(PAGES_READY): $(PAGES)/package.json $(PAGES)/package-lock.json
	cd $(PAGES) && $(NPM_CI)
	@touch $@

$(PAGES_BUILT): $(PAGES_READY) $(wildcard $(PAGES)/*.ts $(PAGES)/next/* $(PAGES)/pages/* $(PAGES)/pages/*/*)
	cd $(PAGES) && npm run --silent build
	@touch $@

$(CLIENT_READY): $(CLIENT)/package.json $(CLIENT)/package-lock.json
	cd $(CLIENT) && $(NPM_CI)
	@touch $@

$(UI_READY): $(UI)/package.json $(UI)/package-lock.json
	cd $(UI) && $(NPM_CI)
	@touch $@

$(GENERATED_READY): $(GENERATED)/package.json $(GENERATED)/package-lock.json
	cd $(GENERATED) && $(NPM_CI)
	@touch $@

# A Python of its own: a generator of clients is no business of the server's.
$(GENERATOR_READY): $(GENERATED)/requirements.txt constraints.txt | $(BIN)/python
	$(BIN)/python -m venv $(@D)
	$(@D)/bin/python -m pip --disable-pip-version-check install --quiet --constraint constraints.txt \
	  --requirement $(GENERATED)/requirements.txt
	@touch $@

$(CLIENT_BUILT): $(CLIENT_READY) $(CLIENT)/tsconfig.json $(wildcard $(CLIENT)/src/*.ts $(CLIENT)/src/worklets/*.js)
	cd $(CLIENT) && npm run --silent build
	@touch $@
