# `make test` and `make demo` work on a fresh machine: they make their own environment from the hash lock.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
STAMP = $(VENV)/.installed
# as many workers as cores
WORKERS ?= auto

.PHONY: test tests test-slow lint style types demo bench lock clean

$(STAMP): pyproject.toml requirements/core.txt requirements/dev.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements/core.txt -r requirements/dev.txt
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	touch $(STAMP)

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
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

lint: style types

style: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy

demo: $(STAMP)
	$(BIN)/retroact demo

bench: $(STAMP) .venv-diffprivlib/.installed
	for file in benchmarks/[a-z]*.py; do echo "== $$file"; $(BIN)/python $$file || exit 1; done

# Needs uv. Hashes only: no address of any registry goes into the files.
lock:
	uv pip compile --quiet --universal --generate-hashes --no-header --no-annotate --python-version 3.11 \
		pyproject.toml -o requirements/core.txt
	uv pip compile --quiet --universal --generate-hashes --no-header --no-annotate --python-version 3.11 \
		-c requirements/core.txt requirements/dev.in -o requirements/dev.txt
	uv pip compile --quiet --universal --generate-hashes --no-header --no-annotate --python-version 3.11 \
		requirements/diffprivlib.in -o requirements/diffprivlib.txt

clean:
	rm -rf $(VENV) .venv-diffprivlib .pytest_cache .mypy_cache .ruff_cache .hypothesis retroact-demo.html
