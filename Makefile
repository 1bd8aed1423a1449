PYTHON ?= python3
VENV   := .venv
# In how many processes tests run.
WORKERS ?= 2
# Tests start hundreds of processes; without compiled bytecode each would compile what it imports.
export PYTHONDONTWRITEBYTECODE :=
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
# What the core is built with; in the environment itself, so that a second build finds the first one's objects.
BUILDS := "scikit-build-core>=0.11" "nanobind>=2.4" cmake ninja
CORE   := CMakeLists.txt $(wildcard core/*.cpp core/*.hpp)
# Without their dependencies: DiCE's are boosting libraries that none of its methods here needs, NICE's are of old
# versions, and XGBoost's is for graphics cards.
RIVALS := dice-ml==0.12 raiutils==0.4.2 nflows==0.14 NICEx==0.2.3 treecf==0.3.2 \
          xgboost==3.2.0 lightgbm==4.7.0

.PHONY: demo quick test browser ui lint format recording bench docs shown screenshots wheel sanitize aarch64 clean

demo: $(READY)  ## train on the shipped table and explain three refused people
	$(BIN)/dicoflex demo

quick: lint  ## lint, types, layers and the tests that take no time
	$(BIN)/pytest -m "not slow"

test: lint browser  ## everything: lint, types, layers, doctests, tests in Python and in a browser
	$(BIN)/pytest -n $(WORKERS)

browser:  ## Chromium and axe-core for the browser tests, installed where that can be done
	@.ci/browser

ui: browser  ## rebuild the explorer's page from front/ (needs Node)
	cd front && npm run --silent build

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

recording: $(READY)  ## compare what the library computes with what it computed
	$(BIN)/python tests/recording/record.py

bench: $(READY)  ## the quality table and the paper's experiments on all benchmark tables found (very long)
	$(BIN)/dicoflex bench quality all

docs: $(READY)  ## the documentation's site, in docs/_build/html; needs no network, and warnings are errors
	$(BIN)/python -m sphinx -q -W --keep-going -b html docs docs/_build/html

shown: $(READY)  ## refresh the output, the figures and the tree shown in README and in pages that are not executed
	$(BIN)/python docs/tree.py
	$(BIN)/python docs/build.py

screenshots: $(READY)  ## take the documentation's pictures of the explorer anew
	$(BIN)/python docs/screenshots.py

wheel: $(READY)  ## a wheel and a source distribution in dist/
	$(BIN)/pip install --quiet --disable-pip-version-check build
	.ci/compiler $(BIN)/python -m build --no-isolation

sanitize: $(READY)  ## the core's tests with the address and undefined-behaviour sanitizers
	.ci/sanitize

aarch64: $(READY)  ## answers under qemu on aarch64, compared byte for byte (Debian, as root)
	.ci/aarch64
	$(BIN)/pytest tests/test_processors.py

clean:
	rm -rf docs/_build docs/gallery docs/reference/generated docs/tutorials/*.dicoflex build dist $(VENV) .pytest_cache .mypy_cache .ruff_cache

# The stamp makes a second run quick: pip runs only when what it reads has changed.
$(READY): pyproject.toml pins.txt $(CORE)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check $(BUILDS)
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint pins.txt torch
	.ci/compiler $(BIN)/pip install --quiet --disable-pip-version-check --constraint pins.txt --no-build-isolation \
	  --editable ".[test,bench]"
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps $(RIVALS)
	touch $(READY)
