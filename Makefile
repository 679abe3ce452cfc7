# `make demo` and `make test` set up everything by themselves; `make help` lists the rest.
# Nothing here needs a terminal. PYTHON=/path/to/python chooses the interpreter for .venv.

MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help
BIN := .venv/bin
INSTALLED := .venv/.quadweir-installed

# Arguments: make demo ARGS="--seconds 10", make test ARGS="-k rows", make bench ARGS="--json".
ARGS ?=

.PHONY: demo test check format bench page kafka brokers doctor clean help

demo: $(INSTALLED) ## watch motorway sensors become an RDF stream, live, in about a minute
	@$(BIN)/quadweir demo $(ARGS)

test: $(INSTALLED) brokers ## run every test; those without their broker or suite skip and say why
	@$(BIN)/python scripts/test.py $(ARGS)

check: $(INSTALLED) ## lint, formatting, types, the import contract
	@$(BIN)/ruff check src tests scripts
	@$(BIN)/ruff format --check src tests scripts
	@$(BIN)/mypy
	@$(BIN)/lint-imports

format: $(INSTALLED) ## format the code and mend what the linter can mend
	@$(BIN)/ruff check --fix src tests scripts
	@$(BIN)/ruff format src tests scripts

bench: $(INSTALLED) ## run the benchmarks, each with its baseline
	@$(BIN)/quadweir bench ntriples $(ARGS)

# Needs Node.js; what it builds is committed, so nothing else does.
page: ## rebuild the service's page from page/ into the package (needs npm)
	@cd page && npm ci --no-audit --no-fund --ignore-scripts && npm run --silent build

doctor: $(INSTALLED) ## check this machine and say what to do
	@$(BIN)/quadweir doctor $(ARGS)

kafka: $(INSTALLED) ## start a Kafka broker on a free loopback port until interrupted
	@$(BIN)/python scripts/kafkabroker.py run $(ARGS)

# Best effort: the tests that need a broker skip, with the reason, where one cannot be had.
brokers: $(INSTALLED)
	@sh scripts/bootstrap-brokers.sh

$(INSTALLED): pyproject.toml scripts/bootstrap.sh
	@sh scripts/bootstrap.sh

clean: ## remove the environment, caches and output; fetched jars stay in the user cache
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	rm -rf build dist out spark-warehouse metastore_db artifacts derby.log
	find src tests scripts -name __pycache__ -type d -prune -exec rm -rf {} +

help: ## list the targets
	@echo "Quadweir: live data as RDF streams, continuous SPARQL over them, on Apache Spark"
	@echo
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1|\2/p' $(MAKEFILE_LIST) | \
	  while IFS='|' read -r target text; do printf '%-14s %s\n' "$$target" "$$text"; done
