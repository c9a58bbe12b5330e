# `make demo` is all that a fresh machine needs; `make help` lists the rest.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

# Where rustup puts cargo, for a shell that was opened before it was there.
export PATH := $(or $(CARGO_HOME),$(HOME)/.cargo)/bin:$(PATH)

SUIMON := $(or $(CARGO_TARGET_DIR),target)/release/suimon
# Measured, and not part of the project: shown where it lies beside it.
UMTS := ../shared/traces/TMobile-UMTS-driving.down
DEMO := scenarios/demo-wired.toml scenarios/demo-cellular.toml $(if $(wildcard $(UMTS)),scenarios/demo-umts.toml)

.PHONY: help
help: ## List the targets
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' Makefile | expand -t 24

.PHONY: setup-build
setup-build:
	@scripts/setup.sh build

.PHONY: setup
setup: setup-build ## Install what is missing here, also for test and lint
	@scripts/setup.sh checks

.PHONY: build
build: setup-build ## Build the suimon command
	cargo build --release --locked --bin suimon

.PHONY: demo
demo: build ## FS-AT, Reno, CUBIC, Vegas and DRS over a wired and a cellular link
	$(SUIMON) run $(DEMO) --out suimon-out/demo

.PHONY: python
python: setup ## Build the Python package into .venv
	@# What an environment of pip says of another one would win over ours.
	env -u CONDA_PREFIX VIRTUAL_ENV="$$PWD/.venv" .venv/bin/maturin develop --profile python --locked --quiet

.PHONY: test
test: setup python ## All tests: crates, command, page, Python, documentation
	cargo test --workspace --locked
	.venv/bin/pytest --quiet
	$(MAKE) pages
	@# A browser of another name than the test expects; without any it would skip, which is no pass.
	browser="$${CHROMIUM:-$$(command -v chromium || command -v chromium-browser || command -v google-chrome)}"; \
	    CHROMIUM="$$browser" npm test --prefix crates/report/web
	$(MAKE) instructions
	@echo "make test: passed"

.PHONY: lint
lint: setup ## Format, clippy, documentation, links, wording, Python
	cargo fmt --all --check
	cargo fmt --manifest-path fuzz/Cargo.toml --check
	python3 scripts/check_text.py
	bash -n scripts/*.sh .ci/run
	.venv/bin/ruff check
	.venv/bin/ruff format --check python
	.venv/bin/mypy --strict $$(git ls-files '*.py' ':!python')
	.venv/bin/mypy --strict --explicit-package-bases python
	cargo clippy --workspace --all-targets --locked -- -D warnings
	cargo clippy -p suimon-cli --no-default-features --locked -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked
	@echo "make lint: passed"

.PHONY: docs
docs: build python ## Build the documentation as a site, with every crate's, and run all that it shows
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked
	SUIMON_RUSTDOC="$$(realpath "$${CARGO_TARGET_DIR:-target}/doc")" $(MAKE) pages
	@echo "make docs: suimon-out/site/index.html"

.PHONY: pages
pages: build python ## The same without the crates': site, links, code blocks, notebooks
	rm -rf suimon-out/site suimon-out/site.doctrees
	.venv/bin/sphinx-build -q -W --keep-going -c docs -b html -d suimon-out/site.doctrees . suimon-out/site
	.venv/bin/python scripts/check_site.py suimon-out/site
	.venv/bin/python scripts/check_examples.py --suimon "$(SUIMON)"
	.venv/bin/python scripts/check_walk.py

.PHONY: papers
papers: build ## Re-run the papers and judge their claims
	$(SUIMON) paper fs-at --out suimon-out/papers/fs-at
	$(SUIMON) paper dpd-qt --out suimon-out/papers/dpd-qt
	$(SUIMON) paper rtt-aqm --out suimon-out/papers/rtt-aqm
	$(SUIMON) paper buffer-path --out suimon-out/papers/buffer-path

.PHONY: kernel
kernel: build ## FS-AT's paper on the running kernel beside the simulator, and what it costs there (as root, some eight minutes)
	$(SUIMON) paper fs-at --kernel
	python3 bench/congestion.py $(SUIMON)

.PHONY: picture
picture: build ## Draw the README's picture anew
	python3 scripts/picture.py $(SUIMON) docs/demo.svg

.PHONY: instructions
instructions: build ## Fail where a packet takes 5 % more instructions than it did
	python3 bench/instructions.py

.PHONY: bench
bench: build ## Measure speed beside ns-2 and ns-3, and two cores beside one (some ten minutes)
	python3 bench/bench.py --install
	python3 bench/sweep.py
	python3 bench/several_paths.py

.PHONY: bench-emulator
bench-emulator: setup-build ## Measure emulated links on this machine: rate, delay, speed (root, two minutes, nothing else running)
	cargo run --release --locked -p suimon-emulator --example accuracy

.PHONY: fuzz
fuzz: setup-build ## Throw random input at the readers, a minute each (nightly Rust, cargo-fuzz)
	cargo +nightly fuzz run scenario -- -max_total_time=60
	cargo +nightly fuzz run trace -- -max_total_time=60
	cargo +nightly fuzz run packet -- -max_total_time=60
	cargo +nightly fuzz run bond -- -max_total_time=60
	cargo +nightly fuzz run capture fuzz/corpus/capture crates/capture/tests/data -- -max_total_time=60

.PHONY: clean
clean: ## Remove what was built and what was simulated
	cargo clean
	rm -rf suimon-out .venv crates/report/web/node_modules
