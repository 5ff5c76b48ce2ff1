# Two commands do everything: `make demo` and `make test`. Each sets up what it needs in .venv first.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
PIP = $(BIN)/python -m pip install --disable-pip-version-check

# Tests start many processes: where no bytecode may be written, each compiles the package again.
test test-heavy: export PYTHONDONTWRITEBYTECODE =

.DEFAULT_GOAL := help
.PHONY: help demo test test-heavy battery lint docs gallery bench dist clean

help:
	@echo "make demo    set up a small environment, tune a classifier, certify it, play the paper's bandits (out/demo)"
	@echo "make test    set up, then run the tests of the core, Optuna and scikit-learn parts"
	@echo "make battery hostile inputs at length: state machines, damaged files, kills (long; writes docs/results/battery.md)"
	@echo "make lint    ruff and mypy"
	@echo "make docs    build the documentation into site/"
	@echo "make gallery run examples and notebooks, and keep what they print and draw"
	@echo "make bench   compare speed with CVXPY and plain numpy (minutes)"
	@echo "make dist    build wheel and source archive, and check them for PyPI (out/dist)"

# A stamp per set of extras: reinstall only when the dependencies change.
$(VENV)/stamp-%: pyproject.toml
	@echo "Installing mixbandit[$*] into $(VENV), once:"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(PIP) --editable ".[$*]"
	@touch $@

demo: $(VENV)/stamp-demo
	$(BIN)/mixbandit demo

test: $(VENV)/stamp-test
	$(BIN)/python -m pytest -q -n 2 --dist worksteal -m "not heavy"

test-heavy: $(VENV)/stamp-test $(VENV)/stamp-clusters $(VENV)/stamp-storages $(VENV)/stamp-docs $(VENV)/stamp-browser $(VENV)/stamp-tracking $(VENV)/stamp-notebooks
	$(BIN)/python -m pytest -q -n 2 --dist worksteal -m heavy

battery: $(VENV)/stamp-battery
	$(BIN)/python -m tests.battery

lint: $(VENV)/stamp-test $(VENV)/stamp-lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: export NO_MKDOCS_2_WARNING = 1
docs: $(VENV)/stamp-docs
	$(BIN)/mkdocs build --strict --quiet

gallery: $(VENV)/stamp-all $(VENV)/stamp-tracking $(VENV)/stamp-notebooks
	$(BIN)/python docs/hooks/gallery.py
	$(BIN)/python docs/hooks/notebooks.py

bench: $(VENV)/stamp-bench
	$(BIN)/mixbandit bench
	$(BIN)/python benchmarks/svm.py
	$(BIN)/python benchmarks/asking.py

dist: $(VENV)/stamp-release
	rm -rf out/dist
	$(BIN)/python -m build --outdir out/dist
	$(BIN)/twine check --strict out/dist/*

clean:
	rm -rf $(VENV) out site .pytest_cache .mypy_cache .ruff_cache .hypothesis
