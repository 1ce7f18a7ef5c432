# `make demo` and `make test` work on a fresh machine: each makes its own environment from the hash lock. The demo needs
# what `pip install .` needs, and no more; tests and checks need much more.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
STAMP = $(VENV)/.installed
# as many workers as cores
WORKERS ?= auto
# Tests start hundreds of programs: compiled once, whatever the machine's setting.
export PYTHONDONTWRITEBYTECODE =

.PHONY: docs test tests test-slow lint style types demo bench certificates lock clean

$(STAMP): pyproject.toml requirements/core.txt requirements/dev.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements/core.txt -r requirements/dev.txt
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	touch $(STAMP)

.venv-demo/.installed: pyproject.toml requirements/core.txt
	$(PYTHON) -m venv .venv-demo
	.venv-demo/bin/python -m pip install --quiet --require-hashes -r requirements/core.txt
	touch $@

# What `make bench` compares clusterings with: diffprivlib needs an older scikit-learn than the rest.
.venv-diffprivlib/.installed: requirements/diffprivlib.txt
	$(PYTHON) -m venv .venv-diffprivlib
	.venv-diffprivlib/bin/python -m pip install --quiet --require-hashes -r requirements/diffprivlib.txt
	touch $@

# Types are checked on one core while the others begin with the tests.
test: $(STAMP)
	$(MAKE) --no-print-directory --jobs 3 style types tests

tests: $(STAMP)
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "not slow"

test-slow: $(STAMP)
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal --hypothesis-profile=full

lint: style types

style: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy

demo: .venv-demo/.installed
	PYTHONPATH=src .venv-demo/bin/python -m retroact demo

# The site of the docs, in build/site.
docs: $(STAMP)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

bench: $(STAMP) .venv-diffprivlib/.installed
	for file in benchmarks/[a-z]*.py; do echo "== $$file"; $(BIN)/python $$file || exit 1; done

# All that is shipped about crossfade noise, recomputed by two programs: certificates/README.md. It takes about an hour.
certificates: $(STAMP)
	$(BIN)/python certificates/check.py --most 17

# Needs uv. Hashes only: no address of any registry goes into the files.
lock:
	uv pip compile --quiet --universal --generate-hashes --no-header --no-annotate --python-version 3.11 \
		pyproject.toml -o requirements/core.txt
	uv pip compile --quiet --universal --generate-hashes --no-header --no-annotate --python-version 3.11 \
		-c requirements/core.txt requirements/dev.in -o requirements/dev.txt
	uv pip compile --quiet --universal --generate-hashes --no-header --no-annotate --python-version 3.11 \
		requirements/diffprivlib.in -o requirements/diffprivlib.txt

clean:
	rm -rf $(VENV) .venv-demo .venv-diffprivlib .pytest_cache .mypy_cache .ruff_cache .hypothesis retroact-demo.html
