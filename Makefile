# Everything here works on a machine with Python >= 3.11 and make: the first call makes .venv, and
# `make demo` a smaller .venv-user, with what users need.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
USER_VENV := .venv-user
USER_READY := $(USER_VENV)/.ready
CODE := src tests arena benchmarks reproduction docs/_build_tools docs/gallery
# A file of tests stays with one process, as do its clusters, models and compiled code; in the
# order of tests/conftest.py, by which long files do not come last. Bytecode is kept, even where Python is
# told not to: each process that tests start would compile the package again.
PYTEST := PYTHONDONTWRITEBYTECODE= $(BIN)/pytest -n auto --dist loadfile --no-loadscope-reorder
# The newest Python to check a release with, beside PYTHON.
NEWEST ?= $(PYTHON)

.PHONY: check-python demo test test-all mutants reproduce arena lint format docs pictures dist release-check clean help

help:  ## List the commands
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

check-python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "tempering needs Python 3.11 or newer; run: make PYTHON=/path/to/python3.11"; exit 1; }

$(READY): pyproject.toml | check-python
	@echo "Setting up $(VENV) for developers: tests, types, docs, JAX (1 GB; minutes)."
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	@$(BIN)/python -m pip install --quiet --editable ".[all]" --group dev --group docs
	@touch $@

$(USER_READY): pyproject.toml | check-python
	@echo "Setting up $(USER_VENV): the package, its plots and what they need (520 MB; half a minute," \
	  "or longer if packages must be downloaded)."
	@$(PYTHON) -m venv $(USER_VENV)
	@$(USER_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-compile \
	  --editable ".[plot]"
	@touch $@

demo: $(USER_READY)  ## Set up .venv-user, then show what each part of a topic fit adds (a minute)
	$(USER_VENV)/bin/tempering demo --out demo

test: $(READY)  ## Set up, then run the tests (several minutes on 2 cores)
	$(BIN)/ruff check $(CODE)
	$(BIN)/ruff format --check $(CODE)
	$(PYTEST) -rs -m "not slow"

test-all: $(READY)  ## All tests, the slow ones too
	$(PYTEST)

mutants: $(READY)  ## Make mistakes in the package, one at a time: a test must notice each (minutes)
	$(BIN)/python tests/mutants/run.py

reproduce: $(READY)  ## Every experiment of the paper, on small drawn data (a minute)
	$(BIN)/python -m reproduction all

arena: $(READY)  ## Topic programs that are installed, on eight small drawn corpora (minutes)
	$(BIN)/python -m arena

lint: $(READY)  ## Style and types
	$(BIN)/ruff check $(CODE)
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/pyright

format: $(READY)  ## Rewrite the code in the project's style
	$(BIN)/ruff check --fix $(CODE)
	$(BIN)/ruff format $(CODE)

docs: $(READY)  ## Build the site into site/, running the code of its pages (ten minutes)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

pictures: $(READY)  ## Draw the pictures of the guides anew (minutes)
	$(BIN)/python docs/_build_tools/draw_images.py

dist: $(READY)  ## Build the wheel and the source archive into dist/
	$(BIN)/python -m pip install --quiet --group release
	rm -rf dist
	$(BIN)/python -m build
	$(BIN)/twine check --strict dist/*

release-check: dist  ## Try the wheel with the lowest and the newest dependencies (many minutes)
	$(BIN)/python tests/docs/check_release.py lowest $(PYTHON)
	$(BIN)/python tests/docs/check_release.py newest $(NEWEST)

clean:  ## Remove what the other commands made
	rm -rf $(VENV) $(USER_VENV) arena-results demo dist reproduced site .pytest_cache .ruff_cache
