# make example: the example suite in an environment of its own.
# make test:    all tests, lint and types in another one.
# Both install on the first call and after a change of pyproject.toml; later calls need no network.

PYTHON ?= python3
PIP_FLAGS = --quiet --quiet --disable-pip-version-check
EXAMPLE = .venv-example
TEST = .venv-test

.PHONY: example test lint clean

example: $(EXAMPLE)/.installed
	$(EXAMPLE)/bin/python -m pytest example_suite

test: $(TEST)/.installed
	$(TEST)/bin/python -m pytest -n 2
	$(MAKE) --no-print-directory lint

lint: $(TEST)/.installed
	$(TEST)/bin/ruff check .
	$(TEST)/bin/ruff format --check .
	$(TEST)/bin/mypy

$(EXAMPLE)/.installed: pyproject.toml
	$(PYTHON) -m venv --clear $(EXAMPLE)
	$(EXAMPLE)/bin/python -m pip install $(PIP_FLAGS) --editable .
	touch $@

$(TEST)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv --clear $(TEST)
	$(TEST)/bin/python -m pip install $(PIP_FLAGS) --constraint constraints.txt --editable '.[dev]'
	touch $@

clean:
	rm -rf $(EXAMPLE) $(TEST) .venv-oldest
