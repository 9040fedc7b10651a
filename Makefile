# The README's two commands: `make demo` and `make test`. Each makes .venv and installs what it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check

.PHONY: demo test check setup clean

demo: $(VENV)/.demo
	$(BIN)/dragoman demo

test: check
	$(BIN)/python -m pytest --numprocesses auto --dist loadfile --no-loadscope-reorder

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	$(BIN)/lint-imports

setup: $(VENV)/.dev

$(VENV)/.python:
	$(PYTHON) -m venv $(VENV)
	touch $@

$(VENV)/.demo: $(VENV)/.python pyproject.toml constraints.txt
	$(PIP) install --quiet --constraint constraints.txt --editable '.[demo]'
	touch $@

$(VENV)/.dev: $(VENV)/.python pyproject.toml constraints.txt
	$(PIP) install --quiet --upgrade 'pip>=25.1'
	$(PIP) install --quiet --constraint constraints.txt --editable '.[all]' --group dev
	touch $@ $(VENV)/.demo

clean:
	rm -rf $(VENV) build dist .pytest_cache .ruff_cache .hypothesis
