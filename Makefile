# `make help` lists the targets. Everything runs from a virtual environment that the first target sets up.
SHELL := /bin/bash
.DEFAULT_GOAL := help
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# T=path and K=expression narrow `make test`.
T ?= tests
PYTEST := $(BIN)/python -m pytest -q $(if $(K),-k '$(K)')
# The order of the tests of a run, whose command is shown with it; SEED=number repeats that.
SEED := $(or $(SEED),$(shell echo $$((RANDOM))))
ORDERED := $(PYTEST) --randomly-seed=$(SEED)
# Two halves of about the same length: on two cores they run side by side.
HALF := tests/unit tests/golden tests/conformance tests/chart
OTHER_HALF := tests/integration
FAST := $(HALF) $(OTHER_HALF)
# Each of these remembers for itself how it ended and what failed; `make test-again` and `make test-cluster-again` run that.
CACHE := .pytest_cache/half
OTHER_CACHE := .pytest_cache/other-half
CLUSTER_CACHE := .pytest_cache/cluster
# $(call again,CACHE,FOLDERS). Where the run was broken off, or nothing is known of what failed, it fails.
again = case "$$(cat $(1)/ended 2>/dev/null)" in \
	0) ;; \
	1) $(PYTEST) -o cache_dir=$(1) --last-failed --last-failed-no-failures none $(2) ;; \
	*) echo "no whole run of $(2) to go by" >&2; exit 1 ;; \
	esac
export PATH := $(CURDIR)/$(BIN):$(PATH)

.PHONY: help
help: ## list the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(VENV)/.ready: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or later is needed; name it with PYTHON=python3.x" >&2; exit 1; }
	@echo "setting up $(VENV) (once; about a minute)"
	@$(BIN)/python -c "" 2>/dev/null || $(PYTHON) -m venv --clear $(VENV) # never cleared under what runs from it
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[sandbox]' --group dev
	@$(BIN)/python -m compileall -q operator $(VENV)/lib || true # start-up is measured, and felt, with bytecode
	@touch $@

.PHONY: setup
setup: $(VENV)/.ready ## set up the virtual environment

.PHONY: sandbox
sandbox: setup ## a simulated GPU cluster in your terminal: starts, walks through, stays until Ctrl-C
	@$(BIN)/gpushare sandbox --tour --stay

.PHONY: fmt
fmt: setup ## format, and fix what can be fixed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

.PHONY: lint
lint: setup ## format, lint, spelling, YAML
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/codespell README.md CHANGELOG.md docs operator crds charts examples tests Makefile
	$(BIN)/yamllint --strict crds examples charts/*/Chart.yaml charts/*/values.yaml tests/chart/values

.PHONY: types
types: setup ## mypy, strict
	$(BIN)/mypy

.PHONY: imports
imports: setup ## the layers of docs/architecture.md
	$(BIN)/lint-imports --no-logo

.PHONY: check
check: lint types imports ## everything that can be said without running (and `make unit`)
	$(PYTEST) tests/unit tests/golden

.PHONY: unit
unit: setup ## unit and golden tests
	$(PYTEST) tests/unit tests/golden

.PHONY: test
test: setup ## all fast suites; T=path and K=expression narrow
ifeq ($(T)$(K),tests)
	@rm -rf $(CACHE) $(OTHER_CACHE); mkdir -p $(CACHE) $(OTHER_CACHE); out=$$(mktemp); trap 'rm -f $$out' EXIT; \
	$(ORDERED) -o cache_dir=$(OTHER_CACHE) $(OTHER_HALF) >$$out 2>&1 & other=$$!; \
	echo "$(ORDERED) $(HALF)"; $(ORDERED) -o cache_dir=$(CACHE) $(HALF); half=$$?; echo $$half >$(CACHE)/ended; \
	wait $$other; rest=$$?; echo $$rest >$(OTHER_CACHE)/ended; \
	echo "$(ORDERED) $(OTHER_HALF)"; cat $$out; \
	exit $$((half | rest))
else
	$(PYTEST) $(T)
endif

.PHONY: test-again
test-again: setup ## what failed in the last `make test`, once more
	@$(call again,$(CACHE),$(HALF))
	@$(call again,$(OTHER_CACHE),$(OTHER_HALF))

.PHONY: chart
chart: setup ## the Helm chart, with the real helm: renders, installs, upgrades, uninstalls (needs npm, or HELM=/path/to/helm)
	$(PYTEST) tests/chart

.PHONY: chart-package
chart-package: ## the chart with node feature discovery's in it: NFD_REPOSITORY=address of that chart's repository
	scripts/package_chart.sh

.PHONY: golden-update
golden-update: setup ## rewrite the golden files; read the diff before you commit it
	$(PYTEST) tests/golden tests/unit/test_metrics_page.py --update-golden
	$(PYTEST) tests/chart/test_chart.py::test_crds_are_copies tests/chart/test_kustomize.py::test_files --update-golden

.PHONY: generate
generate: setup ## stubs of the kubelet's protocols, schemas of the embedded API server
	scripts/generate_stubs.sh
	$(BIN)/python scripts/extract_schemas.py

.PHONY: deflake
deflake: setup ## the fast suites in random order until something fails
	while $(PYTEST) $(FAST) -x; do :; done

.PHONY: test-kubectl
test-kubectl: setup ## the walk-through with the oldest and the newest kubectl that are supported
	scripts/walk_with_kubectl.sh 1.32 1.37

.PHONY: test-cluster
test-cluster: setup ## a real Kubernetes, built here where it is missing: the suites of docs/real-cluster.md (needs root)
	@PYTHONPATH=tests $(BIN)/python -m support.real_cluster.preflight
	@rm -rf $(CLUSTER_CACHE); mkdir -p $(CLUSTER_CACHE); \
	$(ORDERED) -o cache_dir=$(CLUSTER_CACHE) tests/cluster; ended=$$?; echo $$ended >$(CLUSTER_CACHE)/ended; exit $$ended

.PHONY: test-cluster-again
test-cluster-again: setup ## what failed in the last `make test-cluster`, once more
	@$(call again,$(CLUSTER_CACHE),tests/cluster)

.PHONY: cluster
cluster: setup ## that Kubernetes with this project on a node of 4 GPUs, to look around in until Ctrl-C (needs root)
	@PYTHONPATH=tests $(BIN)/python -m support.real_cluster

.PHONY: bench
bench: setup ## figures of docs/benchmarks.md, as a table and as JSON
	$(BIN)/python -m tests.bench

.PHONY: image
image: ## the one image (needs docker or podman: CONTAINER_TOOL=podman)
	$(or $(CONTAINER_TOOL),docker) build -t gpu-sharing-operator:dev .

.PHONY: image-archive
image-archive: setup ## the same image as an OCI archive, without docker: OUT=FILE
	@[ -n "$(OUT)" ] || { echo "name the file: make image-archive OUT=image.tar" >&2; exit 1; }
	@PYTHONPATH=tests $(BIN)/python -m support.images "$(OUT)"

.PHONY: clean
clean: ## remove the virtual environment and caches
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage
