# Everything a fresh clone needs: `make demo` and `make test` do all the set-up.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
OUT ?= out
# Small matrices: one thread is faster than several on most machines.
export OMP_NUM_THREADS ?= 1

# What must hold however a processor rounds.
NUMERICAL := tests/test_jitter.py tests/test_path.py tests/test_pool_posterior.py \
	tests/test_stationary.py \
	tests/test_variance_reduction.py tests/acquisition/test_values.py \
	tests/designs/test_certificate.py tests/designs/test_optimal.py

# Not empty: the site's tutorials run with the small numbers of the tests.
TUTORIAL_QUICK ?=

.PHONY: demo test slow processors gpu house lint types tutorials docs bench clean

# The marker is newer than the recipe's inputs, so an install runs when they change.
$(VENV)/.run: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -c constraints.txt torch
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[ax,plot]'
	touch $@

$(VENV)/.test: $(VENV)/.run
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[test]'
	touch $@

$(VENV)/.docs: $(VENV)/.run
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[docs]'
	touch $@

## Classify a real sea bed: prints a table, writes level_set.png, calibration.png and level_set.csv.
demo: $(VENV)/.run
	$(BIN)/python -m botorch_lse --out $(OUT)

## The default test run: five minutes on two cores; the slowest tests are listed.
test: $(VENV)/.test
	$(BIN)/python -m pytest -n 2 --dist worksteal --durations=25 -m "not slow"

## The long tests: paper reports, guarantees, kills, the full storage matrix.
slow: $(VENV)/.test
	$(BIN)/python -m pytest -n 2 --dist worksteal --durations=25 -m slow

## The numerical tests with the instructions of several processors: they round otherwise.
processors: $(VENV)/.test
	$(BIN)/python -m tests.reference.processors $(NUMERICAL)

## The tests of devices on every one found, and what a decision takes on a GPU (needs one).
gpu: $(VENV)/.test
	$(BIN)/python -m pytest -n 2 tests/devices
	$(BIN)/python -m botorch_lse.benchmark speed rows --device cuda

## The numbers of the house: code lines, classes above a class, files of one question.
house: $(VENV)/.test
	$(BIN)/python -W ignore -m tests.reference.house

## Format, lint and the direction of imports.
lint: $(VENV)/.test
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports

## Static types.
types: $(VENV)/.test
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
