# SPDX-License-Identifier: Apache-2.0
# Short names for what people do here; the work is in scripts/ and CMakePresets.json.
JOBS ?= $(shell nproc)
SEEDS ?= 1000
KILLS ?= 20
STORE ?= sqlite
FAULT ?= engine

export JOBS

.DEFAULT_GOAL := help
.PHONY: help setup run examples build package test test-long sim crash crash-flows crash-images crash-workers mutants bench format lint clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## install missing Debian packages
	@scripts/setup

build: setup ## build the release preset; leaves the command at build/pawl
	@mkdir -p build
	@cmake --preset release >build/release.configure.log 2>&1 || { cat build/release.configure.log; exit 1; }
	@cmake --build --preset release -j $(JOBS)
	@ln -sfn release/pawl build/pawl

package: build ## make the Debian packages; they go to build/release/packages
	@cd build/release && cpack >../package.log 2>&1 || { cat ../package.log; exit 1; }
	@ls build/release/packages/*.deb

run: build ## build and start the server with demo data; prints the dashboard's address (PORT=n: another port)
	@scripts/run-demo build/pawl build/run

examples: build ## build and show every example with its output
	@scripts/run-examples build/release/examples

test: setup ## all tests: release, address+undefined, thread sanitizer, short fuzz and simulation
	@scripts/test

test-long: setup ## make test, then more fuzzing (FUZZ_SECONDS=n), SEEDS=n seeds, clang-tidy, mutants and kills: two hours
	@scripts/test --long

sim: setup ## run the simulation with SEEDS=n seeds
	@scripts/run-driver tests/sim pawl_sim --seeds $(SEEDS) --jobs $(JOBS)

crash-flows: setup ## kill a process that runs flows KILLS=n times and audit it
	@scripts/run-driver tests/crash_flow flow_crash_driver --kills $(KILLS)

crash-images: build ## kill a server that works on images KILLS=n times and audit it; BACKEND=dir, reflink or btrfs
	@python3 tests/images/kill.py build/pawl $(KILLS) --backend $(or $(BACKEND),dir)

crash-workers: build ## kill a server that supervises 200 processes KILLS=n times and audit it
	@python3 tests/workers/kill.py build/pawl 200 $(KILLS)

crash: setup ## kill the engine KILLS=n times and audit it; STORE=postgres, FAULT=server|promote|stop
	@scripts/run-driver tests/crash crash_driver --store $(STORE) --fault $(FAULT) --kills $(KILLS)

mutants: setup ## build Pawl with the faults of tests/mutants and see that the tests find each
	@scripts/mutants

bench: setup ## run the benchmarks; results go to build/bench/results.jsonl
	@scripts/bench

format: setup ## format all C++ files
	@scripts/format

lint: setup ## check the format and run clang-tidy on every file
	@scripts/lint

clean: ## remove everything that was built
	@rm -rf build
