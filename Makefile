# Needs Go, make, git and the network. `make` lists the targets.

GOLANGCI_LINT := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0

BIN      := $(CURDIR)/bin
LINT     := $(BIN)/tools/golangci-lint-$(lastword $(subst @, ,$(GOLANGCI_LINT)))
CONTROLLER_GEN_PACKAGE := sigs.k8s.io/controller-tools/cmd/controller-gen@v0.20.0
CONTROLLER_GEN := $(BIN)/tools/controller-gen-$(lastword $(subst @, ,$(CONTROLLER_GEN_PACKAGE)))
GOVULNCHECK_PACKAGE := golang.org/x/vuln/cmd/govulncheck@v1.9.0
GOVULNCHECK := $(BIN)/tools/govulncheck-$(lastword $(subst @, ,$(GOVULNCHECK_PACKAGE)))
# The modules that users link or run; govulncheck looks at these.
SHIPPED  := . adapter/controller-runtime guest-sdk/go guest-sdk/controller-runtime host/oci/keyless
# The Go modules of this repository; the root module is first.
KUBEBUILDER := $(wildcard examples/kubebuilder/*/go.mod)
MODULES  := . adapter/controller-runtime guest-sdk/go guest-sdk/controller-runtime guest-sdk/kube-openapi guest-sdk/gnostic-models examples $(KUBEBUILDER:/go.mod=) bench host/conformance/guests/go host/oci/keyless cmd/release test/chart devcluster/server
# Modules that lint, vet and tests look at. devcluster/server has targets of its
# own: analysing Kubernetes itself takes minutes.
OURS     := . adapter/controller-runtime guest-sdk/go guest-sdk/controller-runtime guest-sdk/kube-openapi guest-sdk/gnostic-models examples $(KUBEBUILDER:/go.mod=) bench host/conformance/guests/go host/oci/keyless cmd/release test/chart
EXAMPLES := configmapgenerator secretmirror memcached webapp dnsrecord periodicjob website
GUESTS   := $(EXAMPLES:%=$(BIN)/examples/%.wasm)
RUST_EXAMPLES := configmapgenerator
# Those on the API of kube-rs need the Rust of kube-core.
KUBE_EXAMPLES := kube-configmapgenerator kube-document
HAS_KUBE_RUST := [ "$$(cargo --version 2>/dev/null | cut -d. -f2)" -ge 89 ] 2>/dev/null

# A development build knows its checkout, for the SDK of what wasmctl new makes.
CHECKOUT := github.com/wasmctl/wasmctl/cmd/wasmctl/internal/project.checkout=$(CURDIR)

# Version of the control plane that is built and used: 1.33 is the oldest one, nothing
# the newest. CI uses the newest only: another one takes minutes to build.
KUBERNETES ?=
DEVCLUSTER := $(BIN)/devcluster$(KUBERNETES:%=-%)
export WASMCTL_DEVCLUSTER := $(DEVCLUSTER)
export CARGO_TARGET_DIR   := $(BIN)/rust
# test/e2e runs what make build and make guests have made.
export WASMCTL_BINARY   := $(BIN)/wasmctl
export WASMCTL_EXAMPLES := $(BIN)/examples
# The first run on a machine compiles hundreds of modules. Tests mostly wait, so more of
# them run at once than there are CPUs.
TEST_FLAGS ?= -timeout 60m -parallel 4
FUZZTIME   ?= 30s
BENCH      ?= .
SMITH      ?= 4000
RIGHTS     ?= 50000
RIGHTS_SEED ?= 1
ATTACKERS  ?= 10 500
MINUTES    ?= 60
FLEET      ?= 15

.DEFAULT_GOAL := help

.PHONY: help
help: ## List the targets
	@awk 'BEGIN {FS = ":.*## "} /^[a-z.-]+:.*## / {printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build bin/wasmctl
	CGO_ENABLED=0 go build -trimpath -ldflags="-s -w -X $(CHECKOUT)" -o $(BIN)/wasmctl ./cmd/wasmctl

VERSION ?= $(shell git describe --tags --exact-match 2>/dev/null || echo dev)
COMMIT ?= $(shell git rev-parse HEAD)
# Everything that is published has the time of the commit.
export SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct)
PLATFORMS ?= linux-amd64 linux-arm64 darwin-amd64 darwin-arm64
DIST  := $(BIN)/dist
STAGE := $(BIN)/stage
SHARE := $(STAGE)/share
# The program for this machine prints the completions, the manual pages and the chart.
NATIVE := $(STAGE)/wasmctl-$(shell go env GOHOSTOS)-$(shell go env GOHOSTARCH)
# Signs the checksums: a private key in PEM, whose public key is in RELEASE_PUB.
RELEASE_KEY ?=
RELEASE_PUB ?= release.pub
# The same commit and version of Go give the same bytes: nothing of the machine, of
# the directory or of the clone's history is in them.
RELEASE_ENV = GOOS=$(word 1,$(subst -, ,$*)) GOARCH=$(word 2,$(subst -, ,$*)) GOAMD64=v1 GOARM64=v8.0 GOFLAGS=-buildvcs=false

$(STAGE)/wasmctl-%: FORCE
	@echo "building wasmctl-$*"
	@$(RELEASE_ENV) CGO_ENABLED=0 go build -trimpath -ldflags="-s -w -X main.version=$(VERSION) -X main.commit=$(COMMIT) -X main.date=$(shell git log -1 --format=%cI)" -o $@ ./cmd/wasmctl

$(STAGE)/devcluster-%: FORCE
	@echo "building devcluster-$*: minutes the first time"
	@$(RELEASE_ENV) devcluster/server/build.sh $@

.PHONY: FORCE
FORCE:

.PHONY: image
image: $(STAGE)/wasmctl-linux-amd64 $(STAGE)/wasmctl-linux-arm64 ## Write the image to bin/image, an OCI layout, without Docker
	cd cmd/release && go run . -image $(BIN)/image -version $(VERSION) $^

RELEASE_BINARIES := $(foreach p,$(PLATFORMS),$(STAGE)/wasmctl-$(p) $(STAGE)/devcluster-$(p))

.PHONY: release
release: $(RELEASE_BINARIES) $(NATIVE) ## Write archives, checksums, SBOMs, the image, the chart and a manifest for krew to bin/dist
	rm -rf $(SHARE) && mkdir -p $(SHARE)/wasmctl/completions $(SHARE)/wasmctl/man $(SHARE)/devcluster
	cp LICENSE NOTICE $(SHARE)/wasmctl && cp LICENSE NOTICE $(SHARE)/devcluster
	for s in bash zsh fish; do $(NATIVE) completion $$s > $(SHARE)/wasmctl/completions/wasmctl.$$s || exit 1; done
	printf '#!/bin/sh\nexec kubectl wasmctl __complete "$$@"\n' > $(SHARE)/wasmctl/completions/kubectl_complete-wasmctl
	chmod +x $(SHARE)/wasmctl/completions/kubectl_complete-wasmctl
	$(NATIVE) man $(SHARE)/wasmctl/man
	rm -rf $(STAGE)/chart && $(NATIVE) manifests --serve -o helm --output-dir $(STAGE)/chart
	cd cmd/release && go run . -dist $(DIST) -share $(SHARE) -chart $(STAGE)/chart -version $(VERSION) $(RELEASE_BINARIES)
ifeq ($(RELEASE_KEY),)
	@echo "note: there is no RELEASE_KEY, so SHA256SUMS is not signed"
else
	openssl dgst -sha256 -sign $(RELEASE_KEY) -out $(DIST)/SHA256SUMS.sig $(DIST)/SHA256SUMS
	openssl dgst -sha256 -verify $(RELEASE_PUB) -signature $(DIST)/SHA256SUMS.sig $(DIST)/SHA256SUMS
endif

DEVCLUSTER_SOURCES := $(shell find devcluster/server -name '*.go' -not -name '*_test.go' -o -name 'go*.mod' -path 'devcluster/server/*' -o -name build.sh)

$(DEVCLUSTER): $(DEVCLUSTER_SOURCES)
	@echo "building the control plane (kube-apiserver and etcd): some minutes the first time, seconds afterwards"
	devcluster/server/build.sh $@ $(KUBERNETES)

.PHONY: devcluster
devcluster: $(DEVCLUSTER) ## Build bin/devcluster, a real kube-apiserver and etcd; with KUBERNETES=1.33, bin/devcluster-1.33

.PHONY: guests
guests: build ## Build the examples to bin/examples/*.wasm, manifest included
	@mkdir -p $(BIN)/examples
	@for e in $(EXAMPLES); do \
		$(BIN)/wasmctl build examples/$$e --file $(BIN)/examples/$$e.wasm || exit 1; \
		if command -v tinygo >/dev/null; then \
			$(BIN)/wasmctl build examples/$$e --toolchain tinygo --file $(BIN)/examples/$$e.tinygo.wasm || exit 1; \
		else echo "SKIPPED: tinygo is not on PATH: $$e.tinygo.wasm is not built"; fi; \
	done
	@$(MAKE) --no-print-directory guests-rust

.PHONY: guests-rust
guests-rust: build ## Build the examples in Rust to bin/examples/*.rust.wasm
	@if guest-sdk/rust/toolchain.sh; then \
		mkdir -p $(BIN)/examples; \
		if $(HAS_KUBE_RUST); then kube="$(KUBE_EXAMPLES)"; \
		else echo "SKIPPED: cargo is older than 1.89: no example on the API of kube-rs is built"; fi; \
		for e in $(RUST_EXAMPLES) $$kube; do \
			echo "building $$e.rust.wasm"; \
			guest-sdk/rust/build.sh examples/rust/$$e $(BIN)/examples/$$e.rust.wasm && \
			$(BIN)/wasmctl annotate $(BIN)/examples/$$e.rust.wasm || exit 1; \
		done; \
		guest-sdk/rust/build.sh guest-sdk/rust/benchguest $(BIN)/examples/benchguest.rust.wasm; \
	else echo "SKIPPED: there is no Rust for WebAssembly (see above): no *.rust.wasm is built"; fi

.PHONY: test-32
test-32: ## Run the tests of the Go SDK with an int of 32 bits, as TinyGo has
	@case "$$(go env GOHOSTOS)/$$(go env GOHOSTARCH)" in \
	linux/amd64|linux/386|windows/amd64) cd guest-sdk/go && GOARCH=386 CGO_ENABLED=0 go test $(TEST_FLAGS) ./... ;; \
	*) echo "SKIPPED: this machine cannot run GOARCH=386: the Go SDK is not tested with an int of 32 bits" ;; \
	esac

.PHONY: test-rust
test-rust: build ## Run the tests of the Rust SDK and its examples natively
	@if command -v cargo >/dev/null; then \
		(cd guest-sdk/rust && cargo test --quiet --locked --features testing) || exit 1; \
		for e in $(RUST_EXAMPLES); do (cd examples/rust/$$e && cargo test --quiet --locked) || exit 1; done; \
		if [ "$$(cargo --version | cut -d. -f2)" -ge 85 ]; then (cd guest-sdk/rust/k8s-test && cargo test --quiet --locked) || exit 1; \
		else echo "SKIPPED: cargo is older than 1.85: the SDK is not tested with k8s-openapi"; fi; \
		if $(HAS_KUBE_RUST); then \
			(cd guest-sdk/rust-kube && cargo test --quiet --locked --features testing,jsonpatch,derive,admission) || exit 1; \
			for e in $(KUBE_EXAMPLES); do (cd examples/rust/$$e && cargo test --quiet --locked) || exit 1; done; \
		else echo "SKIPPED: cargo is older than 1.89: the API of kube-rs is not tested"; fi; \
		guest-sdk/rust/scaffold-test.sh $(BIN)/wasmctl; \
	else echo "SKIPPED: cargo is not on PATH: the Rust SDK is not tested"; fi

.PHONY: demo
demo: build guests $(DEVCLUSTER) ## Run the example on a local control plane, from nothing to garbage collection
	go run ./cmd/demo

.PHONY: screenshot
screenshot: build guests $(DEVCLUSTER) ## Record docs/terminal.svg from the demo
	go run ./cmd/demo --svg docs/terminal.svg

# Not counted: packages that only tests and benchmarks import, and the two lines of each license header.
TEST_SUPPORT := ^(bench|test|testdata|internal/enginetest|runtime/simulation|devcluster/devclustertest|host/conformance/(guests|hostile)|host/meter/testdata)/

.PHONY: loc
loc: ## Count the lines of production Go, by package
	@git ls-files '*.go' | grep -v -e '_test\.go$$' | grep -v -E '$(TEST_SUPPORT)' | xargs wc -l | \
		awk '$$2 != "total" {n = $$2; if (!sub("/[^/]*$$", "", n)) n = "."; lines[n] += $$1 - 2; all += $$1 - 2} \
		END {for (n in lines) printf "%6d %s\n", lines[n], n | "sort -k2"; close("sort -k2"); printf "%6d total\n", all}'

# Tests of these packages build projects: make test leaves such tests out, with -short.
BUILDS := ./cmd/wasmctl/internal/project/... ./host/conformance ./host/conformance/validate
# Processes first: they wait for leases and deadlines while the other tests compute.
E2E := ./test/e2e/run ./test/e2e/serve ./test/e2e/shards ./test/e2e/chaos ./test/e2e/swap ./test/e2e/webhooks ./test/e2e/tenants

.PHONY: test
test: build guests $(DEVCLUSTER) ## Run the tests on one real control plane; with KUBERNETES=1.33, on the oldest version
	$(DEVCLUSTER) --unsafe-no-fsync -- go test $(TEST_FLAGS) $(E2E) $$(go list ./... | grep -v -e /test/e2e -e /internal/project -e '/host/conformance$$' -e '/validate$$')
	go test -short $(TEST_FLAGS) $(BUILDS)
	cd guest-sdk/go && go test $(TEST_FLAGS) ./...
	cd adapter/controller-runtime && go test $(TEST_FLAGS) ./...
	cd guest-sdk/controller-runtime && go test $(TEST_FLAGS) ./...
	@$(MAKE) --no-print-directory test-32
	cd examples && go test -short $(TEST_FLAGS) ./...
	@for m in $(KUBEBUILDER:/go.mod=); do echo "test $$m"; (cd $$m && go test $(TEST_FLAGS) ./...) || exit 1; done
	cd host/oci/keyless && go test $(TEST_FLAGS) ./...
	cd cmd/release && go test $(TEST_FLAGS) ./...
	cd test/chart && go test $(TEST_FLAGS) ./...
	cd bench && go test $(TEST_FLAGS) ./report
	@$(MAKE) --no-print-directory test-rust
	cd devcluster/server && CGO_ENABLED=0 go test -trimpath -vet=off $(TEST_FLAGS) ./...

.PHONY: test-build
test-build: build guests $(DEVCLUSTER) ## Build projects, published operators and kubebuilder projects, and run them
	$(DEVCLUSTER) --unsafe-no-fsync -- go test $(TEST_FLAGS) ./test/e2e/build $(BUILDS)
	cd examples && go test $(TEST_FLAGS) ./...

.PHONY: test-all
test-all: export WASMCTL_TESTS := all
test-all: test test-build ## Run all tests: also the longest, all attacks, many rights, a fleet, the oldest Kubernetes, race and soak
	@$(MAKE) --no-print-directory hostile rights race race-processes fairness fleet soak
	@$(MAKE) --no-print-directory test KUBERNETES=1.33

.PHONY: race
race: build guests $(DEVCLUSTER) ## Run the tests of everything with a lock or a goroutine under the race detector
	$(DEVCLUSTER) --unsafe-no-fsync -- go test -race -short $(TEST_FLAGS) . ./abi/... ./api/... ./cmd/... ./host/... ./internal/... ./runtime/... ./devcluster/...

.PHONY: race-processes
race-processes: build guests $(DEVCLUSTER) ## Run processes of wasmctl under the race detector
	@echo "compiling the examples without the race detector, which makes that ten times as slow"
	$(DEVCLUSTER) --unsafe-no-fsync -- go test $(TEST_FLAGS) -run TestExamples_DoWhatTheirReadmesSay ./test/e2e/run
	go build -race -trimpath -ldflags="-X $(CHECKOUT)" -o $(BIN)/race/wasmctl ./cmd/wasmctl
	WASMCTL_BINARY=$(BIN)/race/wasmctl $(DEVCLUSTER) --unsafe-no-fsync -- go test -race -short $(TEST_FLAGS) $(E2E)

.PHONY: soak
soak: build guests $(DEVCLUSTER) ## Run all tests, or those of SOAK_PACKAGES, up to SOAK times beside busy loops
	$(DEVCLUSTER) --unsafe-no-fsync -- .ci/soak.sh $(SOAK_PACKAGES)

.PHONY: fairness
fairness: build guests $(DEVCLUSTER) ## Measure one tenant under fifteen attacks of another one, with ATTACKERS Reconcilers each
	WASMCTL_FAIRNESS="$(ATTACKERS)" $(DEVCLUSTER) --unsafe-no-fsync -- go test -timeout 5h -count=1 -v -run 'TestFairness_Limits$$' ./test/e2e/tenants

.PHONY: fairness-soak
fairness-soak: build guests $(DEVCLUSTER) ## Run all attacks at once, again and again, for MINUTES
	WASMCTL_FAIRNESS_MINUTES=$(MINUTES) $(DEVCLUSTER) --unsafe-no-fsync -- go test -timeout 0 -count=1 -v -run 'TestFairness_Soak$$' ./test/e2e/tenants

.PHONY: fleet
fleet: build guests $(DEVCLUSTER) ## Let replicas that share objects suffer faults for FLEET minutes, and judge each write
	WASMCTL_FLEET_MINUTES=$(FLEET) WASMCTL_TEST_SHARDS=20 $(DEVCLUSTER) --unsafe-no-fsync -- go test -timeout 0 -count=1 -v -run 'TestShards_Fleet$$' ./test/e2e/shards

.PHONY: rights
rights: $(DEVCLUSTER) ## Compare the rights of writes with a model, in RIGHTS random cases
	WASMCTL_RIGHTS_CASES=$(RIGHTS) WASMCTL_RIGHTS_SEED=$(RIGHTS_SEED) go test -timeout 3h -count=1 -v -run TestRights_WhatChangesLiesWithinThem ./host/kubeapi

.PHONY: fuzz
fuzz: ## Run each fuzz target for FUZZTIME
	@for m in . guest-sdk/go; do (cd $$m && go list ./... | while read -r pkg; do \
		for f in $$(go test -list '^Fuzz' $$pkg | grep ^Fuzz); do \
			echo "$$pkg $$f"; go test -run '^$$' -fuzz "^$$f\$$" -fuzztime $(FUZZTIME) $$pkg || exit 1; \
		done; done) || exit 1; done

.PHONY: hostile
hostile: $(DEVCLUSTER) ## Run all attacks on the real command, not only some of each kind
	WASMCTL_HOSTILE=all go test -timeout 2h -run Process ./host/conformance/hostile

.PHONY: smith
smith: ## Compare SMITH modules of wasm-smith metered and unmetered (needs cargo)
	METER_SMITH=$(SMITH) go test -run SmithModules -timeout 0 ./host/meter

.PHONY: bench
bench: build guests $(DEVCLUSTER) ## Run the benchmarks named by BENCH, and the comparison with native peers
	go test -run '^$$' -bench '$(BENCH)' -benchmem ./abi/... ./host/... ./runtime/...
	cd bench && $(DEVCLUSTER) --unsafe-no-fsync -- go test -run '^$$' -bench '$(BENCH)' -benchtime 1x -timeout 30m ./...

PEERS := $(BIN)/bench

# What bench-peers compares, beside bin/wasmctl and the examples.
.PHONY: peers
peers: build guests $(DEVCLUSTER)
	@mkdir -p $(PEERS)
	@rm -f $(PEERS)/*
	$(BIN)/wasmctl build guest-sdk/go/benchguest --file $(PEERS)/guest.wasm
	@if command -v tinygo >/dev/null; then \
		$(BIN)/wasmctl build guest-sdk/go/benchguest --toolchain tinygo --file $(PEERS)/guest.tinygo.wasm; \
	else echo "SKIPPED: tinygo is not on PATH: no guest of TinyGo is measured"; fi
	@if [ -f $(BIN)/examples/benchguest.rust.wasm ]; then cp $(BIN)/examples/benchguest.rust.wasm $(PEERS)/guest.rust.wasm; \
	else echo "SKIPPED: there is no Rust for WebAssembly: no guest of Rust is measured"; fi
	@if $(HAS_KUBE_RUST); then echo "building bench/kube-rs: minutes the first time"; \
		(cd bench/kube-rs && cargo build --quiet --locked --release) && cp $(CARGO_TARGET_DIR)/release/bench-kube-rs $(PEERS)/kube-rs; \
	else echo "SKIPPED: cargo is not on PATH or older than 1.89: kube-rs is not measured"; fi

.PHONY: bench-peers
bench-peers: peers ## Compare with controller-runtime and kube-rs, and write docs/performance.md; with SHORT=1, only try it
ifdef SHORT
	cd bench && WASMCTL_PEERS=$(PEERS)/short.json go test -run '^$$' -bench '^BenchmarkPeers$$' -benchtime 1x -timeout 1h -short -v .
else
	cd bench && WASMCTL_PEERS=results/peers.json go test -run '^$$' -bench '^BenchmarkPeers$$' -benchtime 1x -timeout 3h -v .
	cd bench && WASMCTL_UPDATE=1 go test -run ThePageIs ./report
endif

.PHONY: bench-check
bench-check: guests ## Name what is more than 5 % slower than at commit BASE, by the benchmarks BENCH
	BENCH='$(filter-out .,$(BENCH))' .ci/bench-check.sh $(or $(BASE),$(error which commit? make bench-check BASE=main))

$(LINT):
	@echo "building golangci-lint: minutes the first time"
	GOBIN=$(BIN)/tools go install $(GOLANGCI_LINT)
	mv $(BIN)/tools/golangci-lint $@

.PHONY: lint
lint: $(LINT) ## Run the linter
	@for m in $(OURS); do echo "lint $$m"; (cd $$m && $(LINT) run --config $(CURDIR)/.golangci.yml ./...) || exit 1; done

$(GOVULNCHECK):
	@echo "building govulncheck"
	GOBIN=$(BIN)/tools go install $(GOVULNCHECK_PACKAGE)
	mv $(BIN)/tools/govulncheck $@

.PHONY: vuln
vuln: $(GOVULNCHECK) ## Look for known vulnerabilities in the code that ours calls
	.ci/vuln.sh $(GOVULNCHECK) $(SHIPPED)

.PHONY: columns
columns: ## List lines of Markdown that are longer than 120 columns and could be broken
	.ci/columns.sh

.PHONY: fmt
fmt: $(LINT) ## Format all Go files
	@for m in $(MODULES); do (cd $$m && $(LINT) fmt --config $(CURDIR)/.golangci.yml) || exit 1; done

.PHONY: tidy
tidy:
	@for m in $(MODULES); do (cd $$m && go mod tidy) || exit 1; done

.PHONY: wat
wat: ## Rebuild the .wasm of tests from their .wat (needs wat2wasm: Debian package wabt)
	testdata/wasm/build.sh
	host/conformance/hostile/guests/build.sh

CRDS := api/v1alpha1/crds.yaml

.PHONY: crds
crds: $(CONTROLLER_GEN) ## Generate the CRDs of wasmctl serve from the Go types, and what kubebuilder's projects generate
	(echo '# Generated from the Go types by make crds: do not edit.'; \
		$(CONTROLLER_GEN) crd:crdVersions=v1,ignoreUnexportedFields=true,allowDangerousTypes=true paths=./api/v1alpha1 output:crd:stdout) > $(CRDS).new
	mv $(CRDS).new $(CRDS)
	@for m in $(KUBEBUILDER:/go.mod=); do (cd $$m && $(CONTROLLER_GEN) object crd:maxDescLen=0 rbac:roleName=manager-role \
		paths=./... output:crd:dir=config/crd/bases) || exit 1; done

$(CONTROLLER_GEN):
	@echo "building controller-gen"
	GOBIN=$(BIN)/tools go install $(CONTROLLER_GEN_PACKAGE)
	mv $(BIN)/tools/controller-gen $@

.PHONY: check
check: tidy fmt crds ## Tidy, format, vet, lint, check imports and docs, then fail on any difference to what is committed
	@for m in $(OURS); do echo "vet $$m"; (cd $$m && go vet ./...) || exit 1; done
	@$(MAKE) --no-print-directory lint
	go test -run 'Imports|Globals|Docs|Architecture' .
	@$(MAKE) --no-print-directory columns
	.ci/spdx.sh
	@$(MAKE) --no-print-directory vuln
	@if command -v wat2wasm >/dev/null; then go test ./testdata/wasm; else echo "SKIPPED: wat2wasm is not on PATH: testdata/wasm is not compared with its sources"; fi
	@git diff --exit-code || { echo "check: the tree differs from what is committed (see above)"; exit 1; }

.PHONY: clean
clean: ## Remove everything that was built
	rm -rf $(BIN)
