# Two commands to begin with: `make demo` and `make test`. Both set up .venv by themselves.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/installed
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: demo test check format bench clean

demo: $(STAMP)
	$(BIN)/tandem demo

# Hundreds of processes import the same modules: compiled once, whatever the environment says.
test: export PYTHONDONTWRITEBYTECODE :=
test: $(STAMP)
	$(BIN)/pytest -n 3 --dist loadgroup $(PYTEST_FLAGS)

check: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(STAMP)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(STAMP)
	$(BIN)/python benchmarks/prepare.py
	$(BIN)/python benchmarks/train_cpu.py

clean:
	rm -rf $(VENV) .bench build src/*.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Tandem needs Python 3.11 or newer: make PYTHON=python3.12 ..." >&2; exit 1; }
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || { echo "setting up $(VENV) (the first time takes a minute or two)"; \
		rm -rf $(VENV); $(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); echo "Install Python's venv module (Debian: python3-venv)." >&2; exit 1; }; }
	$(BIN)/python -m pip install --constraint constraints.txt --editable '.[dev,corpora,export,huggingface,language,mlflow,trackio,wandb]'
	@touch $(STAMP)
