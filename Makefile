# make run · make test · make check · make e2e · make soak · make bench · make bench-check · make lock
# Everything happens in .venv, which the first target that needs it creates from requirements.lock.

PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11 python3.14; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { command -v $$p; break; }; done)
BIN := .venv/bin
STAMP := .venv/.stamp
# A Matrix homeserver for the tests, which nothing of clew imports.
SYNAPSE := .synapse/.stamp
# A config of one's own, as `clew init` writes it, else the defaults.
CONFIG ?= $(firstword $(wildcard clew.yaml) config.example.yaml)
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check --no-input
COMPILE := uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header

# $(call installed,program,package): install a Debian package where that is allowed. Elsewhere the tests say what they skip.
SBIN_PATH := $(PATH):/usr/local/sbin:/usr/sbin
installed = PATH="$(SBIN_PATH)"; command -v $(1) >/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null \
	&& echo "installing $(2)" && apt-get -qq update \
	&& DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends $(2) >/dev/null; } \
	|| echo "$(1) is missing (apt-get install $(2)): the tests that need it are skipped"

# What is compiled is kept: the tests start clew hundreds of times.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: run test check e2e soak bench bench-check lock

run: $(STAMP)
	@exec $(BIN)/clew run --config $(CONFIG)

test: $(STAMP) $(SYNAPSE)
	@$(call installed,mosquitto,mosquitto)
	@$(call installed,dovecot,dovecot-imapd)
	@$(call installed,ngircd,ngircd)
	@$(call installed,pg_ctlcluster,postgresql)
	@$(call installed,prosody,prosody)
	@$(call installed,inspircd,inspircd)
	@$(call installed,systemd-analyze,systemd)
	$(BIN)/python -m pytest -q -m "not e2e and not browser and not soak" $(ARGS)

check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy daemon transports tests docs/examples/clew-folder

e2e: $(STAMP) $(SYNAPSE)
	@$(call installed,mosquitto,mosquitto)
	@$(call installed,chromium,chromium)
	@$(call installed,tmux,tmux)
	@$(call installed,pg_ctlcluster,postgresql)
	@$(call installed,strace,strace)
	$(BIN)/python -m pytest -q -m "e2e or browser" $(ARGS)

soak: $(STAMP)
	@$(call installed,mosquitto,mosquitto)
	@$(call installed,pg_ctlcluster,postgresql)
	$(BIN)/python -m pytest -q -m soak $(ARGS)
	$(BIN)/python -m pytest -q --hypothesis-profile search --timeout 3600 tests/property
	CLEW_FUZZ_EXAMPLES=100000 $(BIN)/python -m pytest -q --timeout 3600 tests/property/test_hostile_*.py

# All subjects, or those that ARGS names: make bench ARGS="replying finding".
bench: $(STAMP)
	@$(call installed,mosquitto,mosquitto)
	@$(call installed,pg_ctlcluster,postgresql)
	$(BIN)/python -m bench $(ARGS)

# Fails where a ratio is worse by more than a tenth than the one in bench/results.json.
bench-check: $(STAMP)
	@$(call installed,mosquitto,mosquitto)
	@$(call installed,pg_ctlcluster,postgresql)
	$(BIN)/python -m bench --check $(ARGS)

# requirements.lock: all that make needs. deploy/requirements.lock: the same versions, without the tools for development.
lock:
	{ echo "# Locked with hashes for Python 3.11 and later, tests and tools included. Written by make lock."; \
	  $(COMPILE) --extra dev pyproject.toml; } > requirements.lock.new
	mv requirements.lock.new requirements.lock
	{ echo "# The part of ../requirements.lock that a server needs. Written by make lock."; \
	  $(COMPILE) --extra build --extra postgresql --constraints requirements.lock --no-annotate pyproject.toml; } > deploy/requirements.lock.new
	mv deploy/requirements.lock.new deploy/requirements.lock
	{ echo "# The Matrix homeserver of the tests. Written by make lock."; \
	  echo "matrix-synapse>=1.163,<2" | $(COMPILE) --no-annotate -; } > tests/synapse.lock.new
	mv tests/synapse.lock.new tests/synapse.lock

$(STAMP): requirements.lock pyproject.toml
	@[ -n "$(PYTHON)" ] || { echo "clew needs Python 3.11 or later, and found: $$(python3 --version 2>&1). \
	Install one (Debian 12 and Ubuntu 24.04 have it), or say where it is: make run PYTHON=/path/to/python3" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	|| { echo "clew needs Python 3.11 or later; $(PYTHON) is $$($(PYTHON) --version 2>&1)" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "$(PYTHON) cannot make a virtual environment. On Debian and Ubuntu: \
	apt-get install $$($(PYTHON) -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')" >&2; exit 1; }
	@$(PIP) --version >/dev/null 2>&1 || { echo "making .venv with $(PYTHON)"; $(PYTHON) -m venv --clear .venv; }
	@echo "installing the locked dependencies into .venv"
	@$(PIP) install --require-hashes -r requirements.lock
	@$(PIP) install --no-deps --no-build-isolation -e .
	@touch $@

$(SYNAPSE): tests/synapse.lock | $(STAMP)
	@echo "installing synapse for the tests into .synapse"
	@{ $(PYTHON) -m venv --clear .synapse && .synapse/bin/python -m pip --quiet --disable-pip-version-check --no-input install --require-hashes \
	-r tests/synapse.lock && touch $@; } || { rm -rf .synapse; echo "synapse cannot be installed: the tests that need it are skipped"; }
