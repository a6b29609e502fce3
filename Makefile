# Every target sets the environment up by itself; see tools/setup_environment.sh.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# The interpreter that the environment is made with; the default is the first of python3.11,
# python3.12, python3.13 and python3 that is one of these versions. `make test PYTHON=python3.12`
# makes an environment of its own.
PYTHON ?=
VENV := $(if $(PYTHON),.venvs/$(notdir $(PYTHON)),.venv)
IN_VENV := $(VENV)/bin/python
ENVIRONMENT := $(VENV)/.installed-$(shell cat requirements.lock pyproject.toml tools/setup_environment.sh tools/install_packages.sh | sha256sum | cut -c1-16)
PEERS := $(ENVIRONMENT)-peers-peft-0.21.2
JAX_VENV := .venv-tpu
JAX := $(JAX_VENV)/.installed-jax-0.10.2-libtpu-0.0.52-cuda-12.9.86
HF4_VENV := .venv-hf4
HF4 := $(HF4_VENV)/.installed-transformers-4.57.3-sentencepiece-0.2.3
# Two workers: each imports TensorFlow and takes up to 3 GB.
WORKERS := --numprocesses=2 --dist=worksteal
# Which lines each test executes.
COVERED := --cov=official/xlnet --cov=data_prep --cov-context=test --cov-report=
TESTS ?= tests
# `make test KERAS=2` runs the tests with tf_keras in place of Keras 3.
KERAS ?= 3
N ?= 10000
SOURCES := official/xlnet data_prep benchmarks tools

# Where it is set, as in many containers, each process that imports TensorFlow takes 7 CPU-seconds more.
unexport PYTHONDONTWRITEBYTECODE
# What TensorFlow reads when it starts.
export TF_USE_LEGACY_KERAS := $(if $(filter 2,$(KERAS)),1,)
export TF_ENABLE_ONEDNN_OPTS ?= 1
export TF_CPP_MIN_LOG_LEVEL ?= 3
# CPU-seconds of the tests of earlier runs.
export XLNET_TEST_COSTS ?= build/costs.json
# Environments of other programs, where they are installed (`make setup-all`).
export XLNET_JAX_PYTHON ?= $(wildcard $(CURDIR)/$(JAX_VENV)/bin/python)
export XLNET_HF4_PYTHON ?= $(wildcard $(CURDIR)/$(HF4_VENV)/bin/python)

.PHONY: help setup setup-all browser demo test test-changed test-all costs executed fuzz journeys mutants test-install bazel-test coverage parity tpu-check gpu-check check audit \
  format release bench figures lesson notebooks docs

help:  ## Show the targets.
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

setup: $(ENVIRONMENT)  ## Create .venv and install everything in it.

# With `-j4`, the four side by side.
setup-all: $(PEERS) $(JAX) $(HF4) browser  ## Install what some tests wait for: PyTorch, ONNX, jax, a browser.

browser:
	tools/install_browser.sh

demo: $(ENVIRONMENT)  ## Pre-train a tiny XLNet on the documentation of the installed packages.
	$(IN_VENV) -m tools.demo

test: $(ENVIRONMENT)  ## Run the tests (not those marked slow), or some: TESTS=tests/unit/tasks.
	$(IN_VENV) -m pytest $(WORKERS) $(TESTS) $(PYTEST_FLAGS)

costs: $(ENVIRONMENT)  ## Run the fast tests and write what they cost to tests/costs.json.
	$(IN_VENV) -m pytest $(WORKERS) --record-costs

# Handed out one by one: the cheapest come first.
test-changed: $(ENVIRONMENT)  ## Run tests that execute what has changed since main, for a minute of CPU time.
	$(IN_VENV) -m tools.changed_tests --output=build/changed_tests.txt
	[ ! -s build/changed_tests.txt ] || $(IN_VENV) -m pytest --selected=build/changed_tests.txt \
	  --numprocesses=2 --dist=load --maxschedchunk=1 --exitfirst $(PYTEST_FLAGS) || [ $$? = 5 ]

# The tests of projects, too, which are slow.
executed: $(ENVIRONMENT)  ## Record in tests/executed.json which functions tests execute, for `make test-changed`.
	$(IN_VENV) -m pytest $(WORKERS) $(COVERED)
	$(IN_VENV) -m pytest $(WORKERS) $(COVERED) --cov-append -m "slow and not nightly" tests/projects
	$(IN_VENV) -m tools.changed_tests --record .coverage --costs=$(XLNET_TEST_COSTS)

test-all: setup-all  ## Run all tests, with what they wait for installed.
	$(IN_VENV) -m pytest $(WORKERS) -m "slow or not slow" --no-skips $(TESTS) $(PYTEST_FLAGS)

fuzz: $(ENVIRONMENT)  ## Try N wrong inputs (N=10000).
	XLNET_FUZZ_CASES=$(N) $(IN_VENV) -m pytest -s -m "slow or not slow" $(PYTEST_FLAGS) \
		tests/property/test_wrong_input_fuzz.py tests/property/test_wrong_request_fuzz.py

journeys: N := 40
journeys: $(ENVIRONMENT)  ## Make N journeys of right input through the verbs (N=40).
	XLNET_JOURNEYS=$(N) $(IN_VENV) -m pytest $(WORKERS) -m slow tests/property/test_journeys.py $(PYTEST_FLAGS)

mutants: N := 150
mutants: $(ENVIRONMENT)  ## Change N places of the product, one at a time, and count those that tests notice.
	$(MAKE) test PYTEST_FLAGS="$(COVERED)"
	$(IN_VENV) -m tools.mutants --number=$(N) --coverage=.coverage --costs=$(XLNET_TEST_COSTS) \
	  --output=build/mutants.jsonl

test-install: $(ENVIRONMENT)  ## Install the wheel without the lock, lowest and highest, and run it.
	$(IN_VENV) -m tools.try_install $(INSTALL_FLAGS)

bazel-test: $(ENVIRONMENT)  ## Run some tests under the Bazel of Debian, without a network.
	VENV=$(VENV) tools/bazel/test.sh

coverage: $(ENVIRONMENT)  ## Run the tests and show which lines they reach.
	$(IN_VENV) -m pytest $(WORKERS) --cov=official/xlnet --cov=data_prep --cov-report=term \
	  --cov-report=html:build/coverage $(PYTEST_FLAGS)

parity: $(PEERS) $(HF4)  ## Compare with HF transformers; installs PyTorch.
	$(IN_VENV) -m pytest -m "slow or not slow" tests/parity $(PYTEST_FLAGS)

tpu-check: CHECKS := not v100 and not gpu and not jax  ## Compile small steps for TPUs, without one; installs jax.
gpu-check: CHECKS := v100 or gpu or jax  ## The same for GPUs; runs a step in jax on the CPU.
tpu-check gpu-check: $(ENVIRONMENT) $(JAX)
	XLNET_JAX_PYTHON=$(CURDIR)/$(JAX_VENV)/bin/python $(IN_VENV) -m pytest -m "slow or not slow" \
	  -k "$(CHECKS)" tests/unit/benchmarks/test_accelerators.py $(PYTEST_FLAGS)

check: $(ENVIRONMENT)  ## Check format, lint and types.
	$(IN_VENV) -m ruff format --check .
	$(IN_VENV) -m ruff check .
	$(IN_VENV) -m mypy $(SOURCES)

audit: $(ENVIRONMENT)  ## Look the locked packages up among known vulnerabilities.
	$(IN_VENV) -m pip_audit --requirement=requirements.lock --disable-pip --require-hashes

format: $(ENVIRONMENT)  ## Format the code and mend what the linter can.
	$(IN_VENV) -m ruff check --fix .
	$(IN_VENV) -m ruff format .

release: $(ENVIRONMENT)  ## Build the distributions into dist/, check them, run the README from them, and tag the version.
	$(IN_VENV) -m tools.surface
	tag=v$$($(IN_VENV) -c "from official import xlnet; print(xlnet.__version__)"); \
	$(IN_VENV) -m tools.package --tag=$$tag && \
	$(IN_VENV) -m tools.try_install --release=dist && git tag $$tag && echo "git push origin $$tag"

bench: $(ENVIRONMENT)  ## Measure speed and memory beside the peers; writes docs/performance.md.
	$(IN_VENV) -m benchmarks.all

figures: $(ENVIRONMENT)  ## Draw the pictures of the documentation that are older than what they show.
	$(IN_VENV) -m benchmarks.reports.figures

lesson: $(ENVIRONMENT)  ## Make the model and data that the notebooks read, for a class, too: a read-only folder `lesson`.
	$(IN_VENV) -m tools.lesson

notebooks: $(ENVIRONMENT)  ## Run the notebooks of the documentation, and write their outputs.
	$(IN_VENV) -m tools.notebooks

docs: $(ENVIRONMENT)  ## Build the documentation into site/.
	$(IN_VENV) -m tools.api_page
	$(IN_VENV) -m mkdocs build --strict

# Done once for a content of the lock: the name of the stamp file is its checksum.
$(ENVIRONMENT):
	tools/setup_environment.sh $(VENV) $(PYTHON)
	rm -f $(VENV)/.installed-*
	touch $@

# These stay out of the lock: only comparisons with other implementations need them.
$(PEERS): $(ENVIRONMENT)
	tools/install_packages.sh $(VENV) $(VENV) torch==2.13.0 transformers==5.23.0 \
	  tf2onnx==1.17.0 onnxruntime==1.32.0 peft==0.21.2
	touch $@

# jax and the compilers of TPUs and GPUs, 1.7 GB, in an environment of their own: TensorFlow is not
# needed there, and of CUDA only the assembler is.
$(JAX): $(ENVIRONMENT)
	$(IN_VENV) -m venv --clear $(JAX_VENV)
	tools/install_packages.sh $(VENV) $(JAX_VENV) jax==0.10.2 libtpu==0.0.52 \
	  jax-cuda12-plugin==0.10.2 jax-cuda12-pjrt==0.10.2 nvidia-cuda-nvcc-cu12==12.9.86
	touch $@

# HF's slow XLNet tokenizer, which transformers 5 no longer has.
$(HF4): $(ENVIRONMENT)
	$(IN_VENV) -m venv --clear $(HF4_VENV)
	tools/install_packages.sh $(VENV) $(HF4_VENV) transformers==4.57.3 sentencepiece==0.2.3
	touch $@
