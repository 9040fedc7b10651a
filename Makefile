# The README's two commands: `make demo` and `make test`. Each makes .venv and installs what it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check

.PHONY: demo test docs test-anywhere test-everywhere matrix check setup browser locales clean

demo: $(VENV)/.demo
	$(BIN)/dragoman demo

test: check browser
	$(BIN)/python -m pytest --numprocesses auto --dist loadfile --no-loadscope-reorder

# A part of the tests again, as other machines would run them; and all of them, with a table.
test-anywhere: setup locales
	$(BIN)/python benchmarks/anywhere.py

test-everywhere: setup browser locales
	$(BIN)/python benchmarks/anywhere.py --all --write

matrix: setup
	$(BIN)/python benchmarks/matrix.py

# The documentation as a site in site/: open site/index.html. Broken links and anchors are errors.
docs: setup
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet
	@echo "open site/index.html"

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	$(BIN)/lint-imports

# The studio is tested in Debian's chromium. Where it cannot be installed, its tests are skipped and say so.
browser:
	@command -v chromium >/dev/null && command -v chromedriver >/dev/null || { \
	  [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && export DEBIAN_FRONTEND=noninteractive && \
	  { timeout 240 apt-get install -qq -y --no-install-recommends chromium chromium-driver || \
	    { timeout 60 apt-get update -qq && timeout 240 apt-get install -qq -y --no-install-recommends chromium chromium-driver; }; } \
	  >/dev/null 2>&1; } || echo "no chromium: the studio is not tested in a browser"

# Some tests are repeated in Turkish, where the capital of i is not I. Without the package they say so.
locales:
	@[ -e /usr/share/i18n/locales/tr_TR ] || { \
	  [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && export DEBIAN_FRONTEND=noninteractive && \
	  { timeout 60 apt-get install -qq -y --no-install-recommends locales || \
	    { timeout 60 apt-get update -qq && timeout 60 apt-get install -qq -y --no-install-recommends locales; }; } \
	  >/dev/null 2>&1; } || true

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
