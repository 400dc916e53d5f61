# symjax: everything a contributor types. `make help` lists the targets.
#
#   PYTHON   interpreter to build the environments with (3.11 or newer; the first one found otherwise)
#   VENV     where the environment goes
#   EXTRAS   optional dependencies to install, e.g. EXTRAS=all
#   JAX      another JAX build to install with it, e.g. JAX='jax[cuda12]' or JAX='jax[tpu]'
#   WORKERS  processes that run the tests

SHELL := /bin/bash
.SHELLFLAGS := -o pipefail -c
.DEFAULT_GOAL := help

at_least_3_11 := import sys; sys.exit(sys.version_info < (3, 11))
exactly_3_11 := import sys; sys.exit(sys.version_info[:2] != (3, 11))
# first interpreter of the list $(1) that really starts and agrees with $(2)
find_python = $(shell for p in $(1); do "$$p" -c '$(2)' >/dev/null 2>&1 && { command -v "$$p"; break; }; done)

# environment $(2) of interpreter $(1); Debian's Python comes without venv, which root may add
make_venv = "$(1)" -m venv $(2) >/dev/null \
	  || { [ "$$(id -u)" = 0 ] && apt-get update -qq && apt-get install -y -qq python3-venv && "$(1)" -m venv $(2); } \
	  || { echo "could not make $(2) with $(1): on Debian and Ubuntu, apt-get install python3-venv" >&2; exit 1; }

ifndef PYTHON
PYTHON := $(call find_python,python3 python3.13 python3.12 python3.11 python,$(at_least_3_11))
endif
UV := $(shell command -v uv 2>/dev/null)
VENV ?= .venv
PY := $(VENV)/bin/python
EXTRAS ?=
JAX ?=
WORKERS ?= 2
FUZZ_SECONDS ?= 60

target_package := .$(if $(EXTRAS),[$(EXTRAS)])
stamp := $(VENV)/.installed

ORACLE_VENV ?= .venv-oracle
ORACLE_PYTHON ?= $(call find_python,python3.11 python3 $(HOME)/.pyenv/versions/3.11.*/bin/python,$(exactly_3_11))
ORACLE_PACKAGES := mxnet==1.9.1 numpy==1.23.5 scipy==1.10.1 scikit-learn==1.2.2
oracle_stamp := $(ORACLE_VENV)/.installed

.PHONY: help
help:  ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 18

.SILENT: $(stamp) $(oracle_stamp)
$(stamp): pyproject.toml requirements.lock
	echo "installing symjax into $(VENV) (once, a minute or two)"
ifneq ($(UV),)
	$(UV) venv --quiet --allow-existing --python "$(or $(PYTHON),3.12)" $(VENV)
	$(UV) pip install --quiet --python $(PY) -c requirements.lock -e "$(target_package)" --group dev $(if $(JAX),"$(JAX)")
else
	test -n "$(PYTHON)" || { echo "symjax needs Python 3.11 or newer: make PYTHON=/path/to/python3" >&2; exit 1; }
	$(call make_venv,$(PYTHON),$(VENV))
	$(PY) -m pip install --quiet --upgrade "pip>=25.1"
	$(PY) -m pip install --quiet -c requirements.lock -e "$(target_package)" --group dev $(if $(JAX),"$(JAX)")
endif
	touch $@

.PHONY: venv
venv: $(stamp)  ## make the environment (.venv), once

.PHONY: demo
demo: $(stamp)  ## a classifier written by MXNet: load, check, fine-tune, draw
	$(VENV)/bin/symjax demo

.PHONY: test
test: $(stamp)  ## all tests that need no MXNet (and those that do, where `make oracle` was run)
	$(PY) -m pytest -n $(WORKERS) $(PYTEST_ARGS)

.PHONY: lint
lint: ruff types  ## ruff and pyright

.PHONY: ruff
ruff: $(stamp)
	$(PY) -m ruff check .

.PHONY: types
types: $(stamp)
	$(PY) -m pyright --pythonpath $(PY)

.PHONY: format
format: $(stamp)  ## let ruff rewrite what it can
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .

$(oracle_stamp):
	echo "installing MXNet 1.9.1 into $(ORACLE_VENV) (once)"
ifneq ($(UV),)
	$(UV) venv --quiet --allow-existing --python "$(or $(ORACLE_PYTHON),3.11)" $(ORACLE_VENV)
	$(UV) pip install --quiet --python $(ORACLE_VENV)/bin/python $(ORACLE_PACKAGES)
else
	test -n "$(ORACLE_PYTHON)" || { echo "MXNet 1.9.1 runs on Python 3.11: make oracle ORACLE_PYTHON=/path/to/python3.11" >&2; exit 1; }
	$(call make_venv,$(ORACLE_PYTHON),$(ORACLE_VENV))
	$(ORACLE_VENV)/bin/python -m pip install --quiet $(ORACLE_PACKAGES)
endif
	MXNET_SUBGRAPH_BACKEND=NONE $(ORACLE_VENV)/bin/python -c 'import mxnet; assert mxnet.nd.ones(2).sum().asscalar() == 2'
	touch $@

.PHONY: oracle
oracle: $(oracle_stamp)  ## a separate environment with real MXNet 1.9.1, the reference of the parity tests

.PHONY: oracle-record
oracle-record: $(stamp)  ## record the parity tests' golden files anew
	@test -n "$$SYMJAX_ORACLE_PYTHON" || $(MAKE) --no-print-directory oracle
	$(PY) -m tests.parity.record $(RECORD_ARGS)
	export MXNET_SUBGRAPH_BACKEND=NONE MXNET_MKLDNN_ENABLED=0 MXNET_STORAGE_FALLBACK_LOG_VERBOSE=0; \
	  oracle="$${SYMJAX_ORACLE_PYTHON:-$(ORACLE_VENV)/bin/python}"; \
	  "$$oracle" -m tests.face.record && "$$oracle" -m tests.ndarray.record && "$$oracle" tests/oracle/record_params.py && \
	  "$$oracle" tests/oracle/record_training.py && "$$oracle" tests/oracle/record_dgl.py && \
	  "$$oracle" tests/oracle/record_sparse_training.py

# OVERWRITE=1 keeps the outputs of the run in the .ipynb files
.PHONY: notebooks
notebooks: $(stamp)  ## write the notebooks from their text twins and run them
	$(PY) -m jupytext --quiet --to ipynb --update $(wildcard notebooks/[0-9]*.py notebooks/[0-9]*.md)
	$(PY) -m pytest --nbmake --nbmake-timeout=600 $(if $(OVERWRITE),--overwrite) -n $(WORKERS) notebooks

# RECORD_OPS=--measure finds out platforms and gradients of all operators again (minutes)
.PHONY: docs-ops
docs-ops: $(stamp)  ## docs/operators.md and what `symjax ops` tells, from the registry and the parity cases
	$(PY) -m tests.record_ops $(RECORD_OPS)

.PHONY: bench
bench: $(stamp)  ## the speed table, as ratios measured in one run
	$(PY) -m tests.benchmarks $(BENCH_ARGS)

.PHONY: fuzz
fuzz: $(stamp)  ## coverage-guided fuzzing of the file readers, FUZZ_SECONDS long
ifneq ($(UV),)
	$(UV) pip install --quiet --python $(PY) --group fuzz
else
	$(PY) -m pip install --quiet --group fuzz
endif
	$(PY) -m tests.fuzz --seconds $(FUZZ_SECONDS)

.PHONY: lock
lock: $(stamp)  ## renew requirements.lock (needs uv)
	uv pip compile --quiet --universal --upgrade --python-version 3.11 --no-annotate --no-header --no-emit-index-url \
	  --all-extras --group dev pyproject.toml -o requirements.lock

.PHONY: dist
dist: $(stamp)  ## source archive and wheel in dist/
	rm -rf dist && $(PY) -m build --outdir dist .

.PHONY: clean
clean:  ## remove environments, caches and build output
	rm -rf $(VENV) $(ORACLE_VENV) build dist out .pytest_cache .ruff_cache .hypothesis
	find symjax lowering sparse tests -name __pycache__ -type d -prune -exec rm -rf {} +
