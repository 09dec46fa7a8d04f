# Two commands set everything up on a machine with Python 3.11 or newer:
#   make demo    TPC-H SF1 on the best device present, every answer checked
#   make test    linter, strict type checker, tests
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SF ?= 1
JOBS ?= auto
FUZZ ?= 5000
MUTATIONS ?= 2000
MUTANTS ?= 100000
FAULTS ?= 500
COMPILERS ?= 1000

.DEFAULT_GOAL := help
.PHONY: help demo compare test tests quick check lint types fuzz windows compilers ranks mutants faults values test-slow test-cuda cluster cubins docs clean

help:
	@sed -n 's/^## //p' Makefile

## make demo       install, generate TPC-H SF1, run and check the 22 queries
demo: $(VENV)/.demo
	$(BIN)/python -m tpch run --sf $(SF)

## make compare    the same side by side with DuckDB, medians of five hot runs
compare: $(VENV)/.dev
	$(BIN)/python -m tpch run --sf $(SF) --runs 5 --engines gquery,duckdb

## make test       install the dev extra; ruff, mypy --strict, pytest
# The type checker has one process: it runs beside the tests. Their processes and those that they start find bytecode that
# another has written, and each worker takes tests that follow one another, whose tables and kernels it has already.
test: export PYTHONDONTWRITEBYTECODE =
test: lint
	$(MAKE) --no-print-directory -j 2 types tests

tests: $(VENV)/.dev
	$(BIN)/python -m pytest -q -n $(JOBS) --dist worksteal --durations=10

## make quick      the inner loop: tests that interpret, under a minute
QUICK := tests/sql tests/planner tests/operators tests/columns tests/differential/test_differential.py tests/functions/test_functions.py
quick: $(VENV)/.dev
	GQUERY_QUICK=1 $(BIN)/python -m pytest -q -n $(JOBS) -m "not slow and not long" tests/test_layering.py $(QUICK)

## make check      ruff and mypy alone
check: lint types

lint: $(VENV)/.dev
	$(BIN)/ruff check .

types: $(VENV)/.dev
	$(BIN)/mypy

## make windows    20,000 random calls of window functions against DuckDB, 500 of them compiled
windows: $(VENV)/.dev
	$(BIN)/python -m pytest -q -n $(JOBS) -m "" tests/operators/test_window_functions.py

## make fuzz       random queries against DuckDB (FUZZ=5000)
fuzz: $(VENV)/.dev
	GQUERY_FUZZ=$(FUZZ) $(BIN)/python -m pytest -q -n $(JOBS) tests/differential/test_fuzz.py tests/differential/test_fuzzing.py

## make compilers  both compilers of the CPU: the 22 queries, TPC-DS, random queries (COMPILERS=1000)
compilers: $(VENV)/.dev
	GQUERY_COMPILERS=$(COMPILERS) $(BIN)/python -m pytest -q -n $(JOBS) -m "" tests/differential/test_compilers.py

## make ranks      what tests compile, on one device and on three ranks each
ranks: $(VENV)/.dev
	GQUERY_RANKS=all $(BIN)/python -m pytest -q -n $(JOBS) tests/operators tests/execution tests/kernels tests/distributed tests/planner

## make values     every operator, function and cast at the edges of its types against DuckDB
values: $(VENV)/.dev
	GQUERY_VALUES=all $(BIN)/python -m pytest -q -n $(JOBS) tests/functions/test_values.py tests/functions/test_texts.py tests/functions/test_argument_types.py

## make faults     failed allocations and interrupts at every turn; processes killed, files damaged, disks full (FAULTS=500)
faults: $(VENV)/.dev
	GQUERY_FAULTS=$(FAULTS) $(BIN)/python -m pytest -q -n $(JOBS) tests/execution/test_faults.py tests/execution/test_spilling.py \
		tests/execution/test_query_faults.py tests/execution/test_tiers.py
	GQUERY_FAULTS=$(FAULTS) $(BIN)/python -m pytest -q -n 0 -m "" tests/kernels/test_cache_faults.py

## make cluster    workers of a cluster that are killed in every fragment, and all of them
cluster: $(VENV)/.dev
	$(BIN)/python -m pytest -q -n 0 -m "" tests/distributed/test_cluster.py

## make mutants     mutated statements against DuckDB (MUTANTS=100000)
mutants: $(VENV)/.dev
	GQUERY_MUTANTS=$(MUTANTS) $(BIN)/python -m pytest -q -n $(JOBS) tests/sql/test_mutated_sql.py

## make mutations  damaged files of each kind, each read in a process that may die (MUTATIONS=2000)
mutations: $(VENV)/.dev
	GQUERY_MUTATIONS=$(MUTATIONS) $(BIN)/python -m pytest -q -n $(JOBS) tests/io/test_mutations.py tests/io/test_pages.py

## make test-slow  the tests on larger data
test-slow: $(VENV)/.dev
	$(BIN)/python -m pytest -q -m slow

## make test-cuda  the tests that need a GPU
test-cuda: $(VENV)/.dev
	$(BIN)/python -m pytest -q -m cuda

## make cubins     compile the kernels of the 22 queries for sm_75, sm_80, sm_90; registers and spills
cubins: $(VENV)/.dev
	$(BIN)/python -m tpch cubins

## make docs       build the pages of docs/ into docs/_build; warnings are errors
docs: $(VENV)/.docs
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build

## make clean      remove the environment and caches, keep data/
clean:
	rm -rf $(VENV) docs/_build docs/_generated .pytest_cache .mypy_cache .ruff_cache .hypothesis dist
	find gquery tests tpch -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/.venv:
	@$(PYTHON) -c 'import sys; sys.exit("gquery needs Python 3.11 or newer; set PYTHON=python3.12, say" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.demo: $(VENV)/.venv pyproject.toml tools/cuda_extra.py
	extra=$$($(BIN)/python tools/cuda_extra.py) && $(BIN)/python -m pip install --disable-pip-version-check -e ".[demo$$extra]"
	@touch $@

# Of 10,700 modules the tests import a fifth: those are compiled when they are, by all processors, not all of them here by one.
$(VENV)/.dev: $(VENV)/.venv pyproject.toml
	$(BIN)/python -m pip install --disable-pip-version-check --no-compile -q -e ".[dev]"
	@touch $@

$(VENV)/.docs: $(VENV)/.venv pyproject.toml
	$(BIN)/python -m pip install --disable-pip-version-check -q -e ".[docs]"
	@touch $@
