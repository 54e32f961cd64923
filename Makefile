# make quick:       lint, types, and the tests that start no server, no browser and hardly a process; for between edits.
# make test:        lint, types and all tests but the slow ones.
# make test-slow:   slow tests, and property tests with many examples.
# make test-engines: tests of Spark (450 MB), ClickHouse, Trino and Snowflake, which it installs, and Virtuoso, as far as
#                    there are servers; and of dbt and MLflow, each in an environment of its own.
# make test-oldest: the plugin's tests on the oldest pytest that is claimed.
# make test-pythons: the plugin's tests on other versions of Python: make test-pythons PYTHONS="python3.12 python3.13"
# make golden:      what users see of reports, cases and a run, written into tests/golden again; shows what has changed.
# make dist:        the wheel and the sdist.
# make lock:        constraints.txt with the newest version of each package of the test environment.
# make schemas:     the JSON Schemas of suites, settings and reports, written into the package.
# make docs:        the documentation as a site in dist/docs; a broken link is an error.
# make example:     the example suite in an environment that has only what `pip install pytest-queryeval` brings.
# Each installs on the first call and after a change of pyproject.toml; later calls need no network.

PYTHON ?= python3
PIP = -m pip install --quiet --quiet --disable-pip-version-check
EXAMPLE = .venv-example
TEST = .venv-test
PYTHONS = $(foreach version,3.12 3.13,$(shell python$(version) -c '' 2> /dev/null && echo python$(version)))
OLDEST = .venv-oldest
FAKESNOW = .venv-fakesnow
BUILD = .venv-build
DBT = .venv-dbt
MLFLOW = .venv-mlflow
SELECTED = not slow
# What these test is the same on each version of pytest.
SAME = baseline gates json long_names metrics outcomes predictor_files recording scores semantic
PYTEST = $(TEST)/bin/python -m pytest
# All tests, in parts of 50 to 130 s of processor time, the longest first. Each is one process: workers of pytest-xdist
# would all collect every test, load the same libraries and start the same servers. A third of the time is waiting, which
# all at once fill on two cores.
PARTS = features-1 plugin core-1 core-2 features-2 browser
MODELS = tests/features/embeddings tests/plugin/test_plugin_semantic.py  # import PyTorch, which takes long
plugin = tests/plugin $(MODELS:%=--ignore=%)
core-1 = tests/test_[a-l]*
core-2 = tests/test_[m-z]* tests/messages
features-1 = $(filter-out $(MODELS),$(wildcard tests/features/[a-h]*))
features-2 = tests/features/[i-z]*
browser = tests/browser tests/conformance $(MODELS)
QUICK = $(PYTEST) -m "not slow and not server and not process and not long"

unexport PYTHONDONTWRITEBYTECODE  # many tests start a Python of their own: they need not compile everything again

.PHONY: golden quick quick-core quick-features test all-tests $(PARTS) compiled test-slow test-engines test-oldest test-pythons dist lock schemas docs example lint install clean

# The type checker, which has one process, runs beside the tests. These wait for nothing, and each of two processes has
# half of them: with pytest-xdist both would collect all tests, and a third process would take a tenth of the time.
quick: $(TEST)/.installed
	@$(MAKE) --no-print-directory --jobs 3 --output-sync=target lint quick-core quick-features

quick-core: $(TEST)/.installed compiled
	$(QUICK) tests $(patsubst %,--ignore=tests/%,browser conformance features plugin)

quick-features: $(TEST)/.installed compiled
	$(QUICK) tests/features

test: $(TEST)/.installed
	@echo 'The tests run in six parts at the same time; the output of a part appears when it ends.'
	@$(MAKE) --no-print-directory --jobs 7 --keep-going --output-sync=target $(PARTS) lint

all-tests: $(TEST)/.installed
	@$(MAKE) --no-print-directory --jobs 6 --keep-going --output-sync=target $(PARTS)

$(PARTS): $(TEST)/.installed compiled
	$(PYTEST) -m "$(SELECTED)" $(OPTIONS) $($@)

# Processes that run queries write no bytecode: a sixth of what each of a thousand of them takes would be compiling.
compiled: $(TEST)/.installed
	@$(TEST)/bin/python -m compileall -q pytest_queryeval

golden: $(TEST)/.installed
	QUERYEVAL_RENEW_GOLDEN=yes $(PYTEST) tests/test_golden_runs.py tests/browser/test_browser_case.py \
		tests/features/strength tests/features/challenge/test_challenge.py tests/plugin/test_plugin_outcomes.py
	git diff --stat --patch tests/golden

test-slow:
	@$(MAKE) --no-print-directory all-tests SELECTED="slow or hypothesis" OPTIONS=--hypothesis-profile=thorough

# On one processor: Spark takes the rest. ClickHouse's driver needs an older SQLAlchemy than constraints.txt names.
# fakesnow needs an older driver of Snowflake than the tests use.
test-engines: $(TEST)/.installed $(DBT)/.installed $(FAKESNOW)/.installed $(MLFLOW)/.installed
	$(TEST)/bin/python $(PIP) --constraint constraints.txt --editable '.[snowflake,spark]' 'pyspark[connect]'
	$(TEST)/bin/python $(PIP) 'clickhouse-sqlalchemy>=0.3' 'trino[sqlalchemy]'
	FAKESNOW_PYTHON=$(CURDIR)/$(FAKESNOW)/bin/python $(TEST)/bin/python -m pytest -rs \
		tests/test_sql_engines.py tests/test_comparison_order.py tests/features/scale/test_spark.py tests/features/mlflow \
		tests/features/sparql_endpoint/test_virtuoso.py \
		$(patsubst %,tests/features/database_servers/test_%.py,clickhouse snowflake warehouses)
	PATH="$$PATH:$(CURDIR)/$(DBT)/bin" $(TEST)/bin/python -m pytest -rs tests/features/dbt/test_real_dbt.py

test-oldest: $(OLDEST)/.installed compiled
	$(OLDEST)/bin/python -m pytest -n 2 --dist worksteal -m "not slow" tests/plugin \
		$(patsubst %,--ignore=tests/plugin/test_plugin_%.py,$(SAME))

example: $(EXAMPLE)/.installed
	$(EXAMPLE)/bin/python -m pytest example_suite

# Each interpreter gets an environment with the extras but those of text metrics.
test-pythons:
	$(if $(strip $(PYTHONS)),,$(error no Python but this one is found: name one, as in PYTHONS=/opt/python3.13/bin/python))
	for python in $(PYTHONS); do \
	    environment=.venv-$$($$python -c 'import platform; print(platform.python_version())') && \
	    $$python -m venv --clear $$environment && \
	    $$environment/bin/python $(PIP) --constraint constraints.txt --editable '.[duckdb,excel,postgres,sdmx]' \
	        hypothesis pytest-rerunfailures pytest-xdist xmlschema && \
	    $$environment/bin/python -m pytest -n 2 --dist worksteal -m "not slow" tests/plugin || exit 1; \
	done

dist: $(BUILD)/.installed
	$(BUILD)/bin/python -m build --no-isolation --outdir dist

lock: $(TEST)/.installed
	$(TEST)/bin/python .ci/lock

schemas: $(TEST)/.installed
	$(TEST)/bin/queryeval schema suite > pytest_queryeval/suite.schema.json
	$(TEST)/bin/queryeval schema settings > pytest_queryeval/settings.schema.json
	$(TEST)/bin/queryeval schema report > pytest_queryeval/report.schema.json

docs: $(TEST)/.installed
	$(TEST)/bin/python -m sphinx -W --keep-going -q -b html docs dist/docs

lint: $(TEST)/.installed
	$(TEST)/bin/ruff check .
	$(TEST)/bin/ruff format --check .
	$(TEST)/bin/mypy

install: $(TEST)/.installed $(OLDEST)/.installed $(EXAMPLE)/.installed

$(EXAMPLE)/.installed: pyproject.toml
	$(PYTHON) -m venv --clear $(EXAMPLE)
	$(EXAMPLE)/bin/python $(PIP) --editable .
	touch $@

$(BUILD)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv --clear $(BUILD)
	$(BUILD)/bin/python $(PIP) --constraint constraints.txt build hatchling
	touch $@

$(FAKESNOW)/.installed: Makefile
	$(PYTHON) -m venv --clear $(FAKESNOW)
	$(FAKESNOW)/bin/python $(PIP) 'fakesnow[server]==0.12.1' 'snowflake-connector-python<5'
	touch $@

# The server, of the version of the client.
$(MLFLOW)/.installed: constraints.txt
	$(PYTHON) -m venv --clear $(MLFLOW)
	$(MLFLOW)/bin/python $(PIP) "mlflow==$$(sed -n 's/^mlflow-skinny==//p' constraints.txt)"
	touch $@

# Compiled on all processors, by pip on one; not the packages of which the tests import little or nothing, which are half
# of it. Some packages bring files for other versions of Python.
SELDOM_IMPORTED = /(databricks|mlflow|sympy|tests|torch|transformers)/
$(TEST)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv --clear $(TEST)
	$(TEST)/bin/python $(PIP) --no-compile --constraint constraints.txt --editable '.[dev]'
	$(TEST)/bin/python -m compileall -qq -j 0 -x '$(SELDOM_IMPORTED)' $(TEST)/lib || true
	touch $@

# Sees what the other environment has, behind its own older packages.
SEES = import site, sysconfig; site.addsitedir(sysconfig.get_path('purelib', vars={'base': '$(CURDIR)/$(TEST)'}))
$(OLDEST)/.installed: $(TEST)/.installed
	$(PYTHON) -m venv --clear $(OLDEST)
	echo "$(SEES)" > "$$($(OLDEST)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/test.pth"
	$(OLDEST)/bin/python $(PIP) --no-deps --editable . \
		'pytest==8.2.*' 'pytest-xdist==3.6.*' 'pytest-rerunfailures==15.*'
	touch $@

# Not together with the tests: dbt needs older packages. Its versions from 1.12 on fetch a part that is in no index.
$(DBT)/.installed:
	$(PYTHON) -m venv --clear $(DBT)
	$(DBT)/bin/python $(PIP) 'dbt-core<1.12' dbt-duckdb
	touch $@

clean:
	rm -rf .venv-*
