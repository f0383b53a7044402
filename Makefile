# One command per chore. `make setup` is safe to repeat and asks nothing; the others call it.
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.setup-done
PYTEST := $(BIN)/python -m pytest -n 2 --dist loadfile

.PHONY: help setup demo demo-fault test long check bench clean

help:
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 14

setup: $(STAMP) ## create .venv with the three commands, the embedded models and their weights

$(STAMP): pyproject.toml constraints.txt requirements/pinned.txt requirements/setup.sh
	@sh requirements/setup.sh $(VENV) $(PYTHON)
	@touch $@

demo: setup ## run the main job on real files with the embedded model: no key, no server
	@$(BIN)/python -m demo

demo-fault: setup ## start from a workflow with a real mistake and watch the loop mend it
	@$(BIN)/python -m demo --inject-fault

# A test that hangs shows where, and fails.
test: setup check ## the test suite, long parts sampled
	@$(PYTEST) -q -m "not long" -o faulthandler_timeout=300 -o faulthandler_exit_on_timeout=true

long: setup check ## every suite whole
	@$(PYTEST) -q

check: setup ## format, lint, types, floors
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy --no-error-summary
	@$(BIN)/lint-imports >$(VENV)/lint-imports.log || { cat $(VENV)/lint-imports.log; exit 1; }

bench: setup ## tables of speed and size beside a peer measured in the same run
	@$(BIN)/python -m bench

clean: ## remove what setup and the demo made
	rm -rf $(VENV) build dist demo-out *.egg-info
