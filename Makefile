# One command: `make check`. Every target runs with PYTHON: .venv/bin/python where there is one, else python3.
PYTHON ?= $(if $(wildcard .venv/bin/python),.venv/bin/python,python3)

.DEFAULT_GOAL := help
.PHONY: help check format-check lint types test slow faults fuzz mutants lowest bench format

help: ## list the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/\1\t\2/' | expand -t 15

check: format-check lint types test ## all that must hold before a commit

format-check: ## is the code formatted?
	$(PYTHON) -m ruff format --check .

lint: ## ruff's rules
	$(PYTHON) -m ruff check .

types: ## strict mypy
	$(PYTHON) -m mypy

test: ## the fast tests, doctests and README commands
	$(PYTHON) -m pytest -n 2 --dist worksteal

slow: ## what needs minutes or the package index; three at once, since many of them wait
	$(PYTHON) -m pytest -n 3 --dist worksteal -m slow

faults: ## plant faults and see the tests catch them
	$(PYTHON) tests/plant_faults.py

fuzz: ## hunt for inputs that break a promise, a minute a target; ARGS='--seconds 600 heads'
	$(PYTHON) tests/fuzz/run.py $(ARGS)

mutants: ## change core in twelve thousand small ways and count what the tests see; ARGS='ranking bins' for a part
	$(PYTHON) tests/mutants.py $(ARGS)

lowest: ## the fast tests with the lowest allowed versions, in .venv-lowest
	.ci/lowest $(PYTHON)

bench: ## all benchmarks, `make bench-fit` for one; ARGS=--write puts them into benchmarks/README.md
	$(PYTHON) benchmarks/run_all.py $(ARGS)

bench-%:
	$(PYTHON) benchmarks/$(subst -,_,$*).py $(ARGS)

format: ## format the code and apply safe fixes
	$(PYTHON) -m ruff format .
	$(PYTHON) -m ruff check --fix .
