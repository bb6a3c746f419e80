# Each command makes a virtual environment first, from the lists of exact versions in requirements/. A changed Python file
# installs nothing, since the project itself is installed as editable; a changed list or pyproject.toml does.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
UV := $(BIN)/uv
export UV_HTTP_TIMEOUT ?= 180
# uv installs packages without compiled Python files. They are written when a module is first imported, unless this variable,
# which many container images set, forbids it: every process would then compile torch and transformers again, for 9 s.
unexport PYTHONDONTWRITEBYTECODE
# uv does not read pip's settings; an index that was given to pip is the one to use here too.
ifdef PIP_INDEX_URL
export UV_DEFAULT_INDEX ?= $(PIP_INDEX_URL)
endif

# The lists, and the extras of pyproject.toml that each holds beside the core.
LISTS := test demo docs all
EXTRAS_test := embedded dev
EXTRAS_demo := embedded
EXTRAS_docs := embedded docs
EXTRAS_all := all gpu
# These share one environment, so that they agree with the list of the tests. `all` has an environment of its own.
AGREE_demo := -c requirements/test.txt
AGREE_docs := -c requirements/test.txt

CHECKED := codec_bench kernels bench tests scripts examples

.PHONY: demo test test-core test-long test-without-programs test-times fuzz kills check docs bench lock clean gpu

demo: $(VENV)/.demo
	$(BIN)/codec-bench doctor --compile >/dev/null
	$(BIN)/codec-bench demo

test: $(VENV)/.test
	@echo "16,500 tests: 8 to 12 minutes on two cores. 'make test-core' takes two."
	$(BIN)/pytest -n auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder

# The rooms of the core, without networks, models, pages in a browser, documentation and the files that take longest.
CORE := audio config data machine decoding engine kernels messages metrics report stats store terminal text weights benchmark test_layout.py \
	test_notice.py
test-core: $(VENV)/.test
	$(BIN)/pytest -n auto --maxprocesses 4 --dist loadfile --quick $(addprefix tests/,$(CORE))

test-long: $(VENV)/.test
	$(BIN)/pytest -n auto --maxprocesses 4 --dist loadfile -m long

# The tests of optional programs, such as Chromium and FFmpeg, with all of these hidden; every other test is collected.
test-without-programs: $(VENV)/.test
	$(BIN)/pytest -n auto --maxprocesses 2 --dist loadfile --without-programs -m 'programs and not long and not install'

# The CPU time of every test, by file in build/test_times/files.csv.
test-times: $(VENV)/.test
	$(BIN)/python scripts/time_tests.py

# Changed files of every kind that is read; `make fuzz CASES=200` is shorter.
CASES ?= 3000
fuzz: $(VENV)/.test
	$(BIN)/python tests/fuzz/fuzz.py --cases $(CASES)

# Commands that are killed at random moments and started again; `make kills KILLS=20` is shorter.
KILLS ?= 300
kills: $(VENV)/.test
	$(BIN)/python tests/fuzz/kills.py --kills $(KILLS)
	$(BIN)/python tests/fuzz/talks.py

# Errors planted in twenty modules, and how many of them the tests find; SEED chooses modules and errors.
SEED ?= 1
mutate: $(VENV)/.test
	$(BIN)/python tests/mutation/mutation.py --seed $(SEED)

check: $(VENV)/.test
	$(BIN)/ruff check $(CHECKED)
	$(BIN)/ruff format --check $(CHECKED)
	$(BIN)/python scripts/check_names.py
	$(BIN)/mypy
	$(BIN)/pytest -q -n 0 -m long tests/test_types.py
	$(BIN)/python bench/table.py --check

docs: $(VENV)/.docs
	$(BIN)/python scripts/write_docs.py
	$(BIN)/zensical build --strict --clean
	$(BIN)/python scripts/write_docs.py --site build/docs

# Waits for a quiet machine before each bench; `python bench/measure.py` runs only those whose claims have no rows of one.
bench: $(VENV)/.test
	$(BIN)/python bench/measure.py --all

# What a GPU can tell in two times nine minutes, with the Python that is here: `make gpu PART=1` and `make gpu PART=2` are its halves, and
# `make gpu LIMIT_S=300` ends sooner.
gpu:
	$(PYTHON) bench/gpu.py $(if $(PART),--part $(PART)) $(if $(LIMIT_S),--limit-s $(LIMIT_S))

clean:
	rm -rf $(VENV) build dist *.egg-info

# Renews the lists from pyproject.toml. Versions that are still allowed stay; `make lock UPGRADE=1` takes the newest of all.
COMPILE := $(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate --no-emit-index-url \
	--custom-compile-command 'make lock' $(if $(UPGRADE),--upgrade)
lock: | $(UV)
	$(foreach list,$(LISTS),$(COMPILE) pyproject.toml $(addprefix --extra ,$(EXTRAS_$(list))) $(AGREE_$(list)) \
		-o requirements/$(list).txt &&) true
	echo uv | $(COMPILE) - -c requirements/test.txt -o requirements/uv.txt
	$(COMPILE) requirements/build.in -o requirements/build.txt

$(BIN)/python:
	@$(PYTHON) -c 'import sys; found = sys.version_info[:2]; sys.exit(None if (3, 11) <= found < (3, 14) else \
		"$(PYTHON) is Python %d.%d; codec-bench needs 3.11, 3.12 or 3.13: for example make PYTHON=python3.13" % found)'
	$(PYTHON) -m venv $(VENV)

$(UV): requirements/uv.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements/uv.txt
	touch $@

# The lists are whole, so that nothing needs to be resolved (--no-deps); build.txt is what packages without a wheel are built with.
$(VENV)/.%: requirements/%.txt requirements/build.txt pyproject.toml | $(UV)
	$(UV) pip install --python $(BIN)/python --require-hashes --no-deps --build-constraints requirements/build.txt -r $<
	$(UV) pip install --python $(BIN)/python --no-deps --no-build-isolation --editable .
	touch $@ $(if $(filter test,$*),$(VENV)/.demo)
