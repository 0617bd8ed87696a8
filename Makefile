# Every command works without a network and without a W&B account.
EXPERIMENT ?= digits
ARGS ?=
PYTHON ?= python3
EXTRAS ?= dev
VENV := .venv
RUN := $(VENV)/bin/python

.DEFAULT_GOAL := help
.PHONY: help setup sweep plan table8 report test lint sync benchmark

help:  ## list these commands
	@awk -F ':.*## ' '/^[a-z0-9]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(VENV)/.installed: pyproject.toml
	@echo "setting up $(VENV) ..."
	@test -x $(RUN) || $(PYTHON) -m venv $(VENV)
	@$(VENV)/bin/pip install --quiet --editable '.[$(EXTRAS)]'
	@touch $@

setup: $(VENV)/.installed  ## create .venv and install, nothing else

sweep: setup  ## run EXPERIMENT (default: digits) and build its report; again: fill what is missing
	@$(RUN) scripts/train.py --multirun experiment=$(EXPERIMENT) $(ARGS)

plan: setup  ## list the jobs of EXPERIMENT with their state and an estimate; creates nothing
	@$(RUN) scripts/train.py --multirun experiment=$(EXPERIMENT) plan=true $(ARGS)

table8: setup  ## the paper's Table 8: rows x injection points, ours beside the paper's
	@$(RUN) scripts/train.py --multirun experiment=table8 $(ARGS)

report: setup  ## rebuild the tables and figures of EXPERIMENT from its records
	@$(RUN) scripts/report.py experiment=$(EXPERIMENT) $(ARGS)

test: setup  ## run the tests
	@$(RUN) -m pytest -n auto $(ARGS)

lint: setup  ## ruff and mypy
	@$(VENV)/bin/ruff check .
	@$(VENV)/bin/ruff format --check .
	@$(VENV)/bin/mypy

sync: setup  ## upload offline W&B runs
	@$(RUN) scripts/sync.py

benchmark: setup  ## speed and memory of every module beside peers, as ratios
	@$(RUN) scripts/benchmark.py $(ARGS)
