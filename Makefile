# Everything a fresh clone needs: `make demo` and `make test` do all the set-up.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
OUT ?= out
# Small matrices: one thread is faster than several on most machines.
export OMP_NUM_THREADS ?= 1

.PHONY: demo test slow lint types tutorials bench clean

# The marker is newer than the recipe's inputs, so an install runs when they change.
$(VENV)/.run: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -c constraints.txt torch
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[ax,plot]'
	touch $@

$(VENV)/.test: $(VENV)/.run
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[test]'
	touch $@

## Classify a real sea bed: prints a table, writes level_set.png and level_set.csv.
demo: $(VENV)/.run
	$(BIN)/python -m botorch_lse --out $(OUT)

## The default test run: four minutes on two cores; the slowest tests are listed.
test: $(VENV)/.test
	$(BIN)/python -m pytest -n 2 --dist worksteal --durations=25 -m "not slow"

## The long tests: whole paper reproductions, guarantees, the full storage matrix.
slow: $(VENV)/.test
	$(BIN)/python -m pytest -n 2 --dist worksteal --durations=25 -m slow

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
		echo "== $$script"; TUTORIAL_QUICK=1 MPLBACKEND=agg $(BIN)/python "$$script" || exit 1; \
	done

clean:
	rm -rf $(VENV) $(OUT) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache
