PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.DEFAULT_GOAL := help

# Tests start many processes; without bytecode in files each would compile the package again.
unexport PYTHONDONTWRITEBYTECODE

help:  ## what can be done here
	@grep -hE '^[a-z -]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/; s/^(.{12,})\t/\1\n\t/' | expand -t 12

PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

$(BIN)/uctree: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) --editable .
	@touch $@

# First and by its name, so that nothing else decides which build of torch is taken.
$(VENV)/torch: $(BIN)/uctree
	$(PIP) torch==2.13.0
	@touch $@

$(VENV)/dev: $(VENV)/torch
	$(PIP) --editable '.[dev]'
	@touch $@

$(VENV)/learn: $(VENV)/torch
	$(PIP) --editable '.[learn]'
	@touch $@

demo: $(BIN)/uctree  ## search a position whose exact answer is known, and learn tic-tac-toe
	@$(BIN)/python examples/demo.py
	@echo; echo "Next: training tic-tac-toe, which needs torch; installing it unless it is there."
	@$(MAKE) --no-print-directory $(VENV)/learn
	@$(BIN)/python examples/learn_tic_tac_toe.py

check: $(VENV)/dev  ## style, types and layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest tests/test_layers.py

test: $(VENV)/dev  ## all tests that take seconds, those against peers included
	$(BIN)/python -m pytest -n 2 --dist loadfile

quick: $(VENV)/dev  ## a minute of the most telling tests
	$(BIN)/python -m pytest -n 2 --dist load -m 'quick and not slow' tests

# They measure time, or look at the cache of machine code; bounds checks tell nothing new there.
NOT_WITH_BOUNDS := tests/engine/test_disk_cache.py tests/engine/test_notices.py \
	tests/arena/test_benchmarks.py tests/doctor/test_speed.py tests/test_public.py

slow: $(VENV)/dev  ## all tests; those that take seconds once more with bounds checks
	$(BIN)/python -m pytest -n 2 --dist loadfile -m ''
	UCTREE_DEBUG=1 $(BIN)/python -m pytest -n 2 --dist loadfile \
		$(addprefix --ignore=,$(NOT_WITH_BOUNDS)) tests

golden: $(VENV)/dev  ## rewrite the recorded trees and episodes in tests/golden
	$(BIN)/python -m tests.record

bench: $(VENV)/dev  ## all speed figures, as JSON
	$(BIN)/python benchmarks/speed.py
	$(BIN)/python benchmarks/options.py
	$(BIN)/python benchmarks/continuous.py
	$(BIN)/python benchmarks/batches.py
	$(BIN)/python benchmarks/models.py
	$(BIN)/python benchmarks/page.py

bench-tic-tac-toe bench-connect-four bench-othello bench-hex: $(VENV)/dev  ## train and measure
	$(BIN)/python benchmarks/learn.py $(subst -,_,$(patsubst bench-%,%,$@))

bench-muzero-tic-tac-toe bench-muzero-cartpole bench-muzero-three bench-muzero-scratch \
	bench-muzero-connect-four bench-muzero-breakout bench-muzero-ablate: $(VENV)/dev  ## train models and measure
	$(BIN)/python benchmarks/muzero.py $(subst -,_,$(patsubst bench-muzero-%,%,$@))

clean:  ## forget the virtual environment
	rm -rf $(VENV)

.PHONY: help demo check quick test slow golden bench clean \
	bench-tic-tac-toe bench-connect-four bench-othello bench-hex \
	bench-muzero-tic-tac-toe bench-muzero-cartpole bench-muzero-three bench-muzero-scratch \
	bench-muzero-connect-four bench-muzero-breakout bench-muzero-ablate
