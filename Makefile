# `make demo` is all that a fresh machine needs; `make help` lists the rest.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

# Where rustup puts cargo, for a shell that was opened before it was there.
export PATH := $(or $(CARGO_HOME),$(HOME)/.cargo)/bin:$(PATH)

TARGET := $(or $(CARGO_TARGET_DIR),target)
SUIMON := $(TARGET)/release/suimon
# As tests are built: quick to compile, what a packet passes is optimised.
TESTED := $(TARGET)/debug/suimon
# Measured, and not part of the project: shown where it lies beside it.
UMTS := ../shared/traces/TMobile-UMTS-driving.down
DEMO := scenarios/demo-wired.toml scenarios/demo-cellular.toml $(if $(wildcard $(UMTS)),scenarios/demo-umts.toml)

.PHONY: help
help: ## List the targets
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' Makefile | expand -t 24

.PHONY: setup-demo setup-build setup setup-dist
setup-demo setup-build setup-dist:
	@scripts/setup.sh $(@:setup-%=%)
setup: ## Install what is missing here, also for test and lint
	@scripts/setup.sh checks

.PHONY: build
build: setup-build ## Build the suimon command
	cargo build --release --locked -p suimon-cli

# The demo needs a fifth of what the whole command consists of. Where the whole is there already, it serves. The package
# is named, since cargo gives a command that is named alone the features that other packages ask of its libraries.
.PHONY: demo
demo: setup-demo ## FS-AT, Reno, CUBIC, Vegas and DRS over a wired and a cellular link
	@if $(SUIMON) --version 2>/dev/null | grep -qv without; then $(MAKE) build; else \
	    cargo build --release --locked -p suimon-cli --no-default-features; fi
	$(SUIMON) run $(DEMO) --out suimon-out/demo --force

.PHONY: install uninstall
install: ## Install for all users: command, man pages, completions, units (PREFIX=/usr/local, DESTDIR=)
	@$(SUIMON) --version 2>/dev/null | grep -qv without || $(MAKE) build
	@scripts/install.sh "$(SUIMON)"
uninstall: ## Take away what `make install` put there
	@scripts/install.sh --remove

.PHONY: dist
dist: setup-dist ## Package: .deb, static binary, wheels, crates, checksums, list of parts (a quarter of an hour)
	scripts/dist.sh suimon-out/dist

.PHONY: first-minute
first-minute: ## Time demo and tests in a fresh clone, each stage
	scripts/first_minute.sh

# One build for all: the command, tests and examples, and the extension that Python loads.
.PHONY: tested
tested: setup
	cargo build --workspace --lib --bins --tests --examples --locked
	@ln -sf "$$(realpath "$$(ls $(TARGET)/debug/lib_suimon.{so,dylib} 2>/dev/null)")" python/suimon/_suimon.abi3.so

.PHONY: python
python: tested ## Build the Python package into .venv, as tests are built

.PHONY: test
test: tested ## All tests: crates, command, page, Python, documentation
	@# Many tests wait most of the time: all else goes on beside them.
	$(MAKE) --jobs=2 --output-sync=line test-crates test-others
	$(MAKE) test-links
	@echo "make test: passed"

NEXTEST := .venv/bin/cargo-nextest nextest run --workspace --locked --no-fail-fast

.PHONY: test-crates
test-crates:
	$(NEXTEST) -E 'not group(links)'
	MAKEFLAGS= cargo test --workspace --locked --doc --quiet
	$(MAKE) test-walk

# A suimon in whose guests tests can run: it has an emulator and a kernel, which is set up here.
GUEST := $(TESTED) lab list 2>/dev/null | grep -q . || $(TESTED) lab setup >/dev/null && $(TESTED) lab -- true
# Each test in a guest of its own, twice: other work on this machine makes no difference, and the same bytes come out.
IN_GUESTS := CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER="$$(realpath $(TESTED)) lab --twice --" \
    .venv/bin/cargo-nextest nextest run --workspace --locked --no-fail-fast --profile lab

# What a link does to single packets is exact in virtual time, whatever else is at work.
.PHONY: test-guests
test-guests:
	@if $(GUEST); then $(IN_GUESTS); else echo "make test: no guests here, so links are measured in real time"; fi

# In real time it is measured with nothing else at work: all of it where there are no guests.
.PHONY: test-links
test-links:
	@if $(GUEST); then \
	    $(NEXTEST) -E 'group(links) - (binary(live) | test(/^links::/) & not test(a_flood))'; \
	else \
	    $(NEXTEST) -E 'group(links)'; \
	fi

.PHONY: lab
lab: tested ## All tests on a real kernel in virtual time, papers there, and the simulator beside it (an hour)
	$(GUEST)
	$(IN_GUESTS) --ignore-default-filter \
	    -E 'binary(emulator) & test(/^(links|congestion::(path|replay))::/) & not test(a_flood) | binary(live) | binary(bond) & test(/^(world|servers)::/)'
	scripts/older_kernel.sh
	$(TESTED) paper fs-at --lab
	python3 bench/truth.py --suimon $(TESTED)

.PHONY: test-others
test-others:
	$(MAKE) --jobs=1 test-python test-site test-page instructions test-guests
.PHONY: test-python
test-python:
	.venv/bin/pytest --quiet
.PHONY: test-page
test-page:
	@# A browser of another name than the test expects; without any it would skip, which is no pass.
	browser="$${CHROMIUM:-$$(command -v chromium || command -v chromium-browser || command -v google-chrome)}"; \
	    SAMPLE_PAGE="$$(realpath $(TARGET)/debug/examples/sample_page)" SUIMON="$$(realpath $(TESTED))" CHROMIUM="$$browser" npm test --prefix crates/report/web

.PHONY: lint
lint: setup ## Format, clippy, documentation, links, wording, Python
	cargo fmt --all --check
	cargo fmt --manifest-path fuzz/Cargo.toml --check
	python3 scripts/check_text.py
	python3 scripts/check_promises.py
	bash -n scripts/*.sh .ci/run
	.venv/bin/ruff check
	.venv/bin/ruff format --check python
	.venv/bin/mypy --strict $$(git ls-files '*.py' ':!python')
	.venv/bin/mypy --strict --explicit-package-bases python
	cargo clippy --workspace --all-targets --locked -- -D warnings
	cargo clippy -p suimon-cli --no-default-features --locked -- -D warnings
	scripts/check_platforms.sh
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked
	@echo "make lint: passed"

.PHONY: docs
docs: tested ## Build the documentation as a site, with every crate's, and run all that it shows
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked
	SUIMON_RUSTDOC="$$(realpath "$(TARGET)/doc")" $(MAKE) test-site test-walk

.PHONY: pages
pages: tested test-site test-walk ## The same without the crates': site, links, code blocks, notebooks
.PHONY: test-site
test-site:
	rm -rf suimon-out/site suimon-out/site.doctrees
	.venv/bin/sphinx-build -q -W --keep-going -c docs -b html -d suimon-out/site.doctrees . suimon-out/site
	.venv/bin/python scripts/check_site.py suimon-out/site
	.venv/bin/python scripts/check_examples.py --suimon "$(TESTED)"
.PHONY: test-walk
test-walk:
	.venv/bin/python scripts/check_walk.py

.PHONY: papers
papers: build ## Re-run the papers and judge their claims
	$(SUIMON) paper fs-at --out suimon-out/papers/fs-at --force
	$(SUIMON) paper dpd-qt --out suimon-out/papers/dpd-qt --force
	$(SUIMON) paper rtt-aqm --out suimon-out/papers/rtt-aqm --force
	$(SUIMON) paper buffer-path --out suimon-out/papers/buffer-path --force

.PHONY: kernel
kernel: build ## FS-AT's paper on the running kernel beside the simulator, and what it costs there (as root, some eight minutes)
	$(SUIMON) paper fs-at --kernel
	python3 bench/congestion.py $(SUIMON)

.PHONY: whole
whole: build ## The whole road: four phones, two radios each, all four parts and none (a minute)
	python3 bench/whole.py --suimon $(SUIMON) --write

.PHONY: roads
roads: build ## The same phones over LTE, 802.11 and handovers, with pages of measured sizes and a game (a minute)
	for road in web lte wifi handover; do python3 bench/whole.py --suimon $(SUIMON) --road $$road --write || exit 1; done

.PHONY: picture
picture: build ## Redraw the README's picture
	python3 scripts/picture.py $(SUIMON) docs/demo.svg

.PHONY: instructions
instructions: ## Fail where a packet takes 5 % more instructions than it did, as tests are built
	python3 bench/instructions.py --profile dev

.PHONY: build-dist
build-dist: setup-build
	cargo build --profile dist --locked -p suimon-cli

.PHONY: bench
bench: build-dist ## Measure speed beside ns-2 and ns-3, and two cores beside one (some ten minutes)
	python3 bench/bench.py --install
	python3 bench/sweep.py
	python3 bench/several_paths.py

.PHONY: bench-emulator
bench-emulator: setup-build ## Measure emulated links on this machine: rate, delay, speed (root, two minutes, nothing else running)
	cargo run --release --locked -p suimon-emulator --example accuracy

.PHONY: attack
attack: tested ## Hostile clients and ten thousand cuts, kills and restarts of the bond (as root, a quarter of an hour)
	SUIMON_ATTACK_S=$${SUIMON_ATTACK_S:-20} cargo test --locked -p suimon-cli --test cli attack:: -- --nocapture
	SUIMON_EVENTS=$${SUIMON_EVENTS:-10000} SUIMON_WORLDS=$${SUIMON_WORLDS:-4} \
	    cargo test --locked -p suimon-bond --test bond restarts:: -- --nocapture

.PHONY: fuzz
fuzz: setup-build ## Give every reader mutated input, ten million in all, and every policy in C a million packets (SUIMON_FUZZ_SEED=1; 20 minutes)
	SUIMON_FUZZ_INPUTS=$${SUIMON_FUZZ_INPUTS:-10000000} cargo test --locked -p suimon-fuzz --test fuzz -- --nocapture
	SUIMON_PACKETS=$${SUIMON_PACKETS:-1000000} cargo test --locked -p suimon-linux --test linux queue_arithmetic -- --nocapture

.PHONY: fuzz-coverage
fuzz-coverage: setup-build ## Look for input by coverage, a minute each reader (nightly Rust, cargo-fuzz)
	for target in $$(sed -n 's/^name = "\(.*\)"$$/\1/p' fuzz/Cargo.toml | tail -n +2); do \
	    cargo +nightly fuzz run "$$target" -- -max_total_time=60; done

.PHONY: clean
clean: ## Remove what was built and what was simulated
	cargo clean
	rm -rf suimon-out .venv crates/report/web/node_modules python/suimon/*.so
