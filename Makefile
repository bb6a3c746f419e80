# Two commands: `make demo` and `make test`. Both make a virtual environment first; a changed Python file reinstalls
# nothing, since the installation is editable.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: demo test check bench clean

demo: $(VENV)/.demo
	$(BIN)/codec-bench demo

test: $(VENV)/.test
	$(BIN)/pytest -n auto --maxprocesses 4 --dist loadfile

check: $(VENV)/.test
	$(BIN)/ruff check codec_bench kernels bench tests scripts
	$(BIN)/ruff format --check codec_bench kernels bench tests scripts

bench: $(VENV)/.test
	for script in bench/bench_*.py; do $(BIN)/python $$script || exit 1; done

clean:
	rm -rf $(VENV) build dist *.egg-info

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install -c constraints.txt -e '.[embedded]'
	touch $@

$(VENV)/.test: pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install -c constraints.txt -e '.[embedded,dev]'
	touch $@ $(VENV)/.demo
