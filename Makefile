# `make help` lists what can be made. Everything is built into one target directory and, as far as it can
# be, in one profile: `make test` builds dependencies once for tests, command and Python package alike.

CARGO  ?= cargo
PYTHON ?= python3
TARGET := $(abspath $(or $(CARGO_TARGET_DIR),target))
VENV   := $(CURDIR)/.venv
PY     := $(VENV)/bin/python
# A test that hangs for ten minutes ends the run and shows the stack of each thread.
PYTEST := $(PY) -m pytest -q -o faulthandler_timeout=600 -o faulthandler_exit_on_timeout=true

# The profile of the command and of the Python package that `make test` tries: `dev` shares its artefacts
# with `cargo test`, and it keeps the assertions in.
PROFILE     ?= dev
PROFILE_DIR := $(if $(filter dev,$(PROFILE)),debug,$(PROFILE))

.DEFAULT_GOAL := help
.PHONY: help demo demo-tunnel fast bench bench-live bench-access bench-tunnel bench-hub bench-python tournament validation sanitize miri fuzz fuzz-build fuzz-long chaos leaks attacks test test-fast test-rust test-wire test-memory test-python test-docs test-report test-tunnel fmt fmt-check lint python command dist container test-dist test-packages bench-install docs semver name-managers venv clean-venv

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 22

demo: ## reproduces the papers' tables and figures into out/reproduce.html
	@echo "Building the command (optimised) ..."
	$(CARGO) build --profile demo -p ropewalk-cli
	@mkdir -p out
	$(TARGET)/demo/ropewalk reproduce --all --report out/reproduce.html
	@echo
	@echo "Done. Open $(CURDIR)/out/reproduce.html in a browser."

demo-tunnel: ## pages, a call and a download through a tunnel over two emulated links, one of which is pulled (root)
	$(CARGO) build --profile demo -p ropewalk-cli
	$(PYTHON) tests/tunnel/whole_machine.py --binary $(TARGET)/demo/ropewalk

fast: ## the fastest build of the command, optimised by a profile of training runs (needs llvm-tools)
	$(PYTHON) benches/pgo.py

bench: ## measures the speed of the engine, the simulator and the sockets
	@if $(PYTHON) benches/pgo.py --missing; then \
	  $(PYTHON) benches/pgo.py && $(TARGET)/pgo/*/release/ropewalk-bench; \
	else \
	  echo "bench: the plain release build is measured"; $(CARGO) run --release -p ropewalk-bench; \
	fi
ifeq ($(shell id -u),0)
	$(MAKE) bench-live
else
	@echo "bench-live: the emulated links need root; left out"
endif

# Runs of each live figure. One run gives a first impression; the tables in docs/figures.md are medians.
RUNS ?= 3

bench-live: ## the engine on sockets, compared with other stacks, over emulated links (root; RUNS=1: 35 min)
	$(CARGO) build --release -p ropewalk-cli
	$(PYTHON) benches/live/cpu.py --binary $(TARGET)/release/ropewalk --runs $(RUNS)
	$(PYTHON) benches/live/run.py --binary $(TARGET)/release/ropewalk --runs $(RUNS)
	$(PYTHON) benches/live/failover.py --binary $(TARGET)/release/ropewalk --runs $(RUNS)
	$(PYTHON) benches/live/congestion.py --binary $(TARGET)/release/ropewalk --runs $(RUNS)
	$(PYTHON) benches/live/robust.py lossy --binary $(TARGET)/release/ropewalk --runs $(RUNS)
	$(PYTHON) benches/live/robust.py overrun --binary $(TARGET)/release/ropewalk
	$(PYTHON) benches/live/robust.py file --binary $(TARGET)/release/ropewalk
	$(PYTHON) benches/live/fairness.py --binary $(TARGET)/release/ropewalk
	$(CARGO) run --release -p ropewalk-runtime --example many -- idle 1000

# One pass takes about half an hour on an idle machine; runs that were short of CPU are repeated.
bench-access: ## Ropewalk, Linux TCP and Multipath TCP over ten bundles of ordinary access links (root; RUNS=1: 30 min)
	$(CARGO) build --release -p ropewalk-cli
	@mkdir -p out
	$(TARGET)/release/ropewalk bench compare --access --runs $(RUNS) --report out/access.html

bench-tunnel: ## the tunnel beside Linux TCP, Multipath TCP and wireguard-go over emulated links (root; RUNS=1: 14 min)
	$(CARGO) build --release -p ropewalk-cli
	$(PYTHON) benches/live/tunnel.py --binary $(TARGET)/release/ropewalk --runs $(RUNS)
	$(PYTHON) benches/live/tunnel_udp.py --binary $(TARGET)/release/ropewalk --runs $(RUNS)
	$(PYTHON) benches/live/tunnel_cpu.py --binary $(TARGET)/release/ropewalk --runs $(RUNS)

# The last one kills hubs, and measures how long a client is without one.
bench-hub: ## a hub with 1000 clients, 100 of them busy, and one with 5000 idle clients (root; 5 min)
	$(CARGO) build --release -p ropewalk-cli -p ropewalk-load
	$(TARGET)/release/ropewalk-hub-load --binary $(TARGET)/release/ropewalk --clients 1000 --busy 100
	$(TARGET)/release/ropewalk-hub-load --binary $(TARGET)/release/ropewalk --clients 5000 --busy 0
	$(PYTHON) benches/live/hubs.py --binary $(TARGET)/release/ropewalk

bench-python: python ## measures the speed of schedulers in Python and of environments
	$(PY) benches/python_schedulers.py

PACKETDRILL ?=
SUITE       ?=

conformance: ## packetdrill's SCTP scripts over the preload library (root; PACKETDRILL=program SUITE=directory; 4 min)
	@test -n "$(PACKETDRILL)" -a -n "$(SUITE)" || { $(PYTHON) tests/conformance/run.py --help; exit 2; }
	$(CARGO) build -p ropewalk-sockets
	$(PYTHON) tests/conformance/run.py --packetdrill $(PACKETDRILL) --suite $(SUITE) --library $(TARGET)/debug/libropewalk.so

LKSCTP ?=

func-tests: ## functional tests of lksctp-tools over the preload library (root; LKSCTP=directory; 2 min)
	@test -n "$(LKSCTP)" || { $(PYTHON) tests/conformance/func_tests.py --help; exit 2; }
	$(CARGO) build -p ropewalk-sockets
	$(PYTHON) tests/conformance/func_tests.py --source $(LKSCTP) --library $(TARGET)/debug/libropewalk.so

tournament: $(VENV)/.ready ## runs the tournament of all schedulers and updates docs/concepts/tournament.md
	$(CARGO) build --release -p ropewalk-cli
	$(PY) docs/images/make_tournament.py --binary $(TARGET)/release/ropewalk

validation: ## reproduces everything and updates docs/validation.md
	$(CARGO) build --release -p ropewalk-cli
	$(PYTHON) docs/images/make_validation.py --binary $(TARGET)/release/ropewalk

sanitize: ## all tests of the sockets, the only crate with unsafe code, under the address sanitizer
	$(PYTHON) tests/sanitize/run.py

# Cases of each property test: Miri interprets.
MIRI_CASES ?= 16

miri: ## the code that reads and writes memory of C programs, under Miri (nightly Rust with the components miri and rust-src)
	PROPTEST_CASES=$(MIRI_CASES) MIRIFLAGS="-Zmiri-disable-isolation -Zmiri-permissive-provenance" $(CARGO) +nightly miri test -p ropewalk-sockets --lib

# Further options, such as `--only decode mux`.
FUZZ ?=

fuzz: ## runs each fuzz target for 10 s
	$(PYTHON) fuzz/run.py $(FUZZ)

fuzz-build: ## builds the fuzz targets
	$(PYTHON) fuzz/run.py --build

fuzz-long: ## runs each fuzz target for 30 min of CPU time
	$(PYTHON) fuzz/run.py --seconds 1800

# Duration, first seed and build profile: PROFILE=demo is optimised.
CHAOS_SECONDS ?= 600
SEED          ?=

chaos: command ## random faults while files, connections and messages flow (root; SEED=7 repeats that episode)
	$(PYTHON) tests/chaos/chaos.py --binary $(TARGET)/$(PROFILE_DIR)/ropewalk --messages $(TARGET)/$(PROFILE_DIR)/ropewalk-messages \
	  --seconds $(CHAOS_SECONDS) $(if $(SEED),--seed $(SEED) --one)

LEAKS_SECONDS ?= 60

leaks: command ## tries to make a tunnel leak, by random steps on a client with a closed kill switch (root; SEED=7 repeats these steps)
	$(PYTHON) tests/leaks/leaks.py --binary $(TARGET)/$(PROFILE_DIR)/ropewalk --seconds $(LEAKS_SECONDS) $(if $(SEED),--seed $(SEED))

# `--check` fails if a figure exceeds its bound, `--cheap` leaves out slow attacks, `--before FILE` compares.
ATTACKS ?= --table

attacks: command ## measures the effect of attacks on a running Ropewalk (ATTACKS="--check --cheap")
	$(TARGET)/$(PROFILE_DIR)/ropewalk-attacks --binary $(TARGET)/$(PROFILE_DIR)/ropewalk $(ATTACKS)

# A shell in the background, or nohup, lets its children ignore signals by which tests end programs.
SIGNALS := $(shell env --default-signal true 2>/dev/null && echo env --default-signal)

# Some of the others wait for a browser or run on one core: two at a time, each with its output in one piece.
test: test-rust ## everything below
	$(SIGNALS) $(MAKE) --jobs=2 $(if $(filter output-sync,$(.FEATURES)),--output-sync=target) test-wire test-memory test-python test-docs test-report test-packages test-tunnel

test-fast: ## what differs from main: the tests of its crates without those that simulate for minutes
	$(PYTHON) tests/fast.py

test-rust: ## unit, property, integration and tidy tests
	CARGO=$(CARGO) $(SIGNALS) $(PYTHON) tests/rust.py

test-memory: ## C programs with the sockets under the address sanitizer
	$(PYTHON) tests/sanitize/run.py --quick

test-wire: $(VENV)/.ready ## packets against scapy and tshark
	$(CARGO) build --workspace --example wire
	$(PYTEST) -rs tests/wire

test-python: ## the Python package, built into .venv
ifneq ($(wildcard python/pyproject.toml),)
test-python: python command
	cd python && ROPEWALK=$(TARGET)/$(PROFILE_DIR)/ropewalk $(PYTEST)
else
	@echo "test-python: no python/pyproject.toml, nothing to try"
endif

test-docs: command $(VENV)/.ready ## the examples of README.md and docs/
	$(PYTEST) tests/docs
	$(PY) tests/docs/run_examples.py --binary $(TARGET)/$(PROFILE_DIR)/ropewalk \
	  $(if $(wildcard python/pyproject.toml),--python $(PY))

# The package's examples need the package.
ifneq ($(wildcard python/pyproject.toml),)
test-docs: python
endif

test-report: ## the report page in a real browser (chromium)
ifneq ($(wildcard tests/report/test_*.py),)
test-report: command $(VENV)/.ready
	ROPEWALK=$(TARGET)/$(PROFILE_DIR)/ropewalk $(PYTEST) tests/report
else
	@echo "test-report: no tests/report, nothing to try"
endif

test-tunnel: command $(VENV)/.ready ## all traffic of a machine through a tunnel over two links, and records of real transfers (root)
	ROPEWALK=$(TARGET)/$(PROFILE_DIR)/ropewalk $(PYTEST) -rs tests/tunnel tests/records

test-packages: command $(VENV)/.ready ## the contents of the tarball and of the Debian package
ifneq ($(shell command -v dpkg-deb),)
	ROPEWALK=$(TARGET)/$(PROFILE_DIR)/ropewalk $(PYTEST) -rs tests/packages/test_contents.py \
	  tests/packages/test_signature.py tests/packages/test_openwrt.py
else
	@echo "test-packages: no dpkg-deb, nothing to try"
endif

# The tools of packaging have an environment of their own: zig alone is 100 MB.
DIST_VENV := $(TARGET)/dist-venv

# `make dist SIGN=minisign.key` signs the checksums with this secret key.
SIGN ?=

dist: $(DIST_VENV)/.ready ## packages for Linux on x86_64 and aarch64: static command, .deb, wheel (docs/guides/install.md)
	$(DIST_VENV)/bin/python packaging/dist.py $(if $(SIGN),--sign $(SIGN))

container: ## the container image ropewalk, from the static command in dist/ (buildah, podman or docker)
	sh packaging/container/build.sh dist

test-dist: dist ## installs these packages in clean places and tries them (root; mmdebstrap)
	ROPEWALK_DIST=dist $(DIST_VENV)/bin/python -m pytest -q -rs tests/packages

bench-install: ## measures the time from the packages in dist/ to the first result (root; mmdebstrap)
	$(PYTHON) packaging/first_result.py dist

$(DIST_VENV)/.ready: packaging/requirements.txt
	$(PYTHON) -m venv $(DIST_VENV)
	$(DIST_VENV)/bin/python -m pip install --quiet --requirement packaging/requirements.txt
	@touch $@

# Tools in Rust, pinned. Their optimisation takes longer than they run.
MDBOOK        := 0.5.4
SEMVER_CHECKS := 0.51.0
TOOLS         := $(TARGET)/tools
INSTALL_TOOL  := CARGO_PROFILE_RELEASE_OPT_LEVEL=1 CARGO_PROFILE_RELEASE_LTO=off $(CARGO) install --quiet --locked --root $(TOOLS)

docs: python $(TOOLS)/mdbook-$(MDBOOK) $(VENV)/.pdoc-ready ## the documentation site, into target/site/index.html
	$(PYTHON) packaging/book.py --mdbook $(TOOLS)/bin/mdbook --python $(PY)

$(TOOLS)/mdbook-$(MDBOOK):
	$(INSTALL_TOOL) --version $(MDBOOK) --no-default-features --features search mdbook
	@touch $@

$(VENV)/.pdoc-ready: packaging/requirements-docs.txt $(VENV)/.ready
	$(PY) -m pip install --quiet --requirement packaging/requirements-docs.txt
	@touch $@

# The version to compare with: a tag or any other commit.
BASELINE ?= $(shell git describe --tags --abbrev=0 --match 'v*' 2>/dev/null)

semver: $(TOOLS)/semver-checks-$(SEMVER_CHECKS) ## compares the Rust API with the last release, by the rules of semver (BASELINE=v0.1.0)
	PATH="$(TOOLS)/bin:$$PATH" $(PYTHON) packaging/semver.py $(BASELINE)

$(TOOLS)/semver-checks-$(SEMVER_CHECKS):
	$(INSTALL_TOOL) --version $(SEMVER_CHECKS) cargo-semver-checks
	@touch $@

# Installed, they would change how this machine finds names and sets up its links. openresolv comes after systemd-resolved, because both have the program `resolvconf`.
NAME_MANAGERS := $(TOOLS)/name-managers
NAME_PACKAGES := systemd-resolved libsystemd-shared openresolv ifupdown network-manager libnm0 libndp0 libteamdctl0 libjansson4 libmm-glib0 libbluetooth3 libnewt0.52 libslang2 libpsl5 libcurl3-gnutls

name-managers: $(NAME_MANAGERS) ## unpacks Debian's systemd-resolved, openresolv, NetworkManager and ifupdown, with which tests of a tunnel run

$(NAME_MANAGERS):
	rm -rf $@.new && mkdir -p $@.new/packages $@.new/usr/lib $@.new/usr/sbin
	cd $@.new/packages && { apt-get download -qq $(NAME_PACKAGES) || { apt-get update -qq && apt-get download -qq $(NAME_PACKAGES); }; }
	for package in $(NAME_PACKAGES); do dpkg -x $@.new/packages/$${package}_*.deb $@.new; done
	for part in lib sbin; do [ ! -d $@.new/$$part ] || cp -a $@.new/$$part/. $@.new/usr/$$part/; done
	mv $@.new $@

# Cargo unites the features of all that one command builds, and those of the dependencies of tests if it builds a
# test or an example. This command therefore uses what `cargo test --workspace` has built, and adds the Python library.
command:
	$(CARGO) build --workspace --lib --bin ropewalk --bin ropewalk-messages --bin ropewalk-attacks --example wire \
	  --profile $(PROFILE)

ifeq ($(PROFILE)/$(shell uname -s),dev/Linux)
# As `maturin develop`, which would build the workspace once more with the features of this package alone.
SITE = $(shell $(PY) -c 'import sysconfig; print(sysconfig.get_path("purelib"))')

python: command $(VENV)/.ready ## the Python package, into .venv
	install -m 755 $(TARGET)/$(PROFILE_DIR)/lib_ropewalk.so python/ropewalk/_ropewalk.abi3.so
	cd python && $(VENV)/bin/maturin pep517 write-dist-info --metadata-directory $(SITE)
	echo $(CURDIR)/python > $(SITE)/ropewalk.pth
else
python: $(VENV)/.ready
	cd python && VIRTUAL_ENV=$(VENV) $(VENV)/bin/maturin develop --profile $(PROFILE)
endif

venv: $(VENV)/.ready

$(VENV)/.ready: python/requirements-dev.txt
	$(PYTHON) -m venv $(VENV)
	$(PY) -m pip install --quiet --requirement python/requirements-dev.txt
	@touch $@

clean-venv: ## removes .venv
	rm -rf $(VENV)

# Fuzz targets are a workspace of their own.
FUZZ_MANIFEST := --manifest-path fuzz/Cargo.toml

fmt: ## formats all Rust code
	$(CARGO) fmt --all
	$(CARGO) fmt $(FUZZ_MANIFEST)

fmt-check:
	$(CARGO) fmt --all --check
	$(CARGO) fmt $(FUZZ_MANIFEST) --check

lint: fmt-check ## formatting, clippy and rustdoc; a warning is an error
	$(CARGO) clippy --workspace --all-targets -- -D warnings
	CARGO_TARGET_DIR=$(TARGET) $(CARGO) clippy $(FUZZ_MANIFEST) --locked --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --quiet
