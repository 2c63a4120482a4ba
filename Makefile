# Everything a fresh clone needs: `make demo` and `make test` do all the set-up.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
OUT ?= out
# Processes of a test run.
WORKERS ?= 2
# Of fuzzing and kills.
MINUTES ?= 10
# Of a campaign and of kills.
SEED ?= 0
RUNS ?= 1000
# Small matrices: one thread is faster than several on most machines.
export OMP_NUM_THREADS ?= 1
PIP := $(BIN)/python -m pip install --quiet -c constraints.txt
PYTEST := $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal --durations=25

# What must hold however a processor rounds.
NUMERICAL := tests/models/test_jitter.py tests/models/test_path.py tests/models/test_pool_posterior.py \
	tests/models/test_stationary.py \
	tests/functional/test_variance_reduction.py tests/acquisition/test_values.py \
	tests/designs/test_certificate.py tests/designs/test_optimal.py

# Not empty: the site's tutorials run with the small numbers of the tests.
TUTORIAL_QUICK ?=

# Of the matrix; empty: that of constraints.txt.
TORCH ?=
# Likewise; empty: that of .venv.
INTERPRETER ?=
# Of a release: `make dist` compares it with the package's version.
TAG ?=
# What a change is compared with.
BASE ?= HEAD

.PHONY: demo paper check test budget slow research engines exhaustive campaign fuzz kills processors gpu growth coverage \
	metrics matrix nightly wheel dist recipe lint types tutorials docs clean

# The marker is newer than the recipe's inputs, so an install runs when they change.
$(VENV)/.run: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) torch
	$(PIP) -e '.[ax,plot]'
	touch $@

# The tools of each target, by the extra of its name.
$(VENV)/.test $(VENV)/.lint $(VENV)/.docs $(VENV)/.engines $(VENV)/.release: $(VENV)/.%: $(VENV)/.run
	$(PIP) -e '.[$*]'
	touch $@

## Classify a real sea bed: prints a table, writes pictures, a table and a report.
demo: $(VENV)/.run
	$(BIN)/python -m botorch_lse --out $(OUT)

## A change since BASE: format, lint, types of changed files, and the tests of their folders; a minute for a rule.
check: $(VENV)/.lint $(VENV)/.test
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports
	$(BIN)/python -m tests.reference.touched $(BASE)

## The default test run: the package. The slowest tests are listed.
test: $(VENV)/.test
	$(PYTEST) --ignore=tests/research -m "not slow and not engine"

## What the default test run takes, checked: at most ten CPU minutes.
budget: $(VENV)/.test
	$(BIN)/python -m tests.reference.budget

## The long tests of the package: more cases of checks, kills, storage.
slow: $(VENV)/.test
	$(PYTEST) --ignore=tests/research -m "slow and not exhaustive and not engine"

## The tests of the papers' experiments and of the benchmarks.
research: $(VENV)/.test
	$(PYTEST) tests/research -m "not exhaustive and not engine"

## Runs on Ray, Xopt, libEnsemble, Optimas and Blop, which the other targets do not install.
# Where one of Ray's daemons dies, Ray ends the process of the tests without a word. Then,
# and only then, there is no record of them, and they are begun once more.
RAY = $(ENGINES) --junitxml=build/ray.xml tests/ax/test_executors.py
ENGINES = $(BIN)/python -m pytest --durations=25 -m engine
engines: $(VENV)/.test $(VENV)/.engines
	rm -f build/ray.xml
	$(RAY) || (test ! -e build/ray.xml && $(RAY))
	$(ENGINES) tests/integrations tests/research/benchmark/test_engines.py botorch_lse/integrations

## The draft of a paper about the package, as a page and as PDF, by pandoc and chromium.
paper:
	mkdir -p build
	pandoc --citeproc --standalone --resource-path=docs/paper docs/paper/paper.md -o build/paper.html
	chromium --headless --no-sandbox --disable-gpu --no-pdf-header-footer --print-to-pdf=build/paper.pdf build/paper.html

## What takes longest: checks in full, rates by simulation, every storage. Weekly, and before a release.
exhaustive: $(VENV)/.test
	$(PYTEST) -m "exhaustive and not engine"

## Whole runs over a covering of all features, hosts and events; what became of them.
campaign: $(VENV)/.test
	$(BIN)/python -W ignore -m tests.reference.campaign --seed $(SEED) --runs $(RUNS)

## The same for ten minutes.
fuzz: $(VENV)/.test
	$(BIN)/python -W ignore -m tests.reference.campaign --seed $(SEED) --minutes $(MINUTES)

## Table commands and stored runs killed at random moments and resumed, for ten minutes.
kills: $(VENV)/.test
	$(BIN)/python -W ignore -m tests.reference.kills --minutes $(MINUTES) --seed $(SEED)

## The numerical tests with the instructions of several processors: they round otherwise.
processors: $(VENV)/.test
	$(BIN)/python -m tests.reference.processors $(NUMERICAL)

## The tests of devices on every one found, and what a decision takes on a GPU (needs one).
gpu: $(VENV)/.test
	$(BIN)/python -m pytest -n $(WORKERS) tests/devices
	$(BIN)/python -m botorch_lse.benchmark speed rows --device cuda

## What everything exported takes on two sizes of pool; fails where time grows more than is claimed.
growth: $(VENV)/.test
	$(BIN)/python -m botorch_lse.benchmark speed growth --quick

## The lines of the package that the default test run passes through.
coverage: $(VENV)/.test
	$(PIP) pytest-cov
	$(PYTEST) --ignore=tests/research -m "not slow and not engine" --cov=botorch_lse --cov-report=term:skip-covered

## Checks the numbers of the package: code lines, classes above a class, circles of files.
metrics: $(VENV)/.test
	$(BIN)/python -W ignore -m tests.reference.metrics
	$(BIN)/lint-imports

## Core tests with the lowest versions that are allowed, and with the newest, in new environments (eight minutes).
matrix: $(VENV)/.test
	$(BIN)/python -m tests.reference.matrix $(if $(TORCH),--torch $(TORCH)) \
		$(if $(INTERPRETER),--python $(INTERPRETER))

## The default test run on the development versions of BoTorch, GPyTorch and Ax (changes .venv).
nightly: $(VENV)/.test
	$(BIN)/python -m pip install --quiet --upgrade --no-deps \
		git+https://github.com/cornellius-gp/linear_operator git+https://github.com/cornellius-gp/gpytorch \
		git+https://github.com/meta-pytorch/botorch git+https://github.com/facebook/Ax
	$(PYTEST) --ignore=tests/research -m "not slow and not engine"

## Builds wheel and sdist, looks into them, and runs demo, table commands and tutorials from the wheel alone.
wheel: $(VENV)/.release
	$(BIN)/python -m tests.reference.wheel

## The checked wheel and sdist of a release, in dist/.
dist: $(VENV)/.release
	$(BIN)/python -m tests.reference.wheel --dist dist $(if $(TAG),--tag $(TAG))

## Builds the conda recipe with a channel made of this interpreter, and looks into the package (Linux, Python 3.11).
recipe: $(VENV)/.test
	$(PIP) py-rattler-build
	$(BIN)/python -m tests.reference.recipe

## Format, lint and the direction of imports.
lint: $(VENV)/.lint
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports

## Static types.
types: $(VENV)/.lint $(VENV)/.test
	$(BIN)/mypy

## Run every tutorial with small numbers.
tutorials: $(VENV)/.test
	for script in tutorials/*.py; do \
		echo "== $$script"; \
		TUTORIAL_QUICK=1 SMOKE_TEST=1 MPLBACKEND=agg $(BIN)/python "$$script" || exit 1; \
	done

## The site, build/site/index.html: runs every tutorial, needs no network once installed.
docs: $(VENV)/.docs
	TUTORIAL_QUICK=$(TUTORIAL_QUICK) $(BIN)/python -m sphinx -q -W --keep-going -j auto \
		-b html docs build/site
	$(BIN)/python docs/links.py build/site

clean:
	rm -rf $(VENV) $(OUT) build docs/api/generated docs/generated dist *.egg-info .mypy_cache .ruff_cache .pytest_cache
