# kcp: targets call one script each. `make` alone prints this help.
SHELL := /usr/bin/env bash
NODE_BIN = $(shell scripts/node.sh --install)
WITH_NODE = export PATH="$(NODE_BIN):$$PATH";

.DEFAULT_GOAL := help

.PHONY: help
help: ## print this help
	@awk 'BEGIN {FS = ":.*## "} /^[a-z0-9-]+:.*## / {printf "  make %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

node_modules/.installed: package.json package-lock.json
	@echo "installing npm packages, about 15 s ..." >&2
	@$(WITH_NODE) npm ci --no-audit --no-fund --loglevel=error
	@touch $@

.PHONY: install
install: node_modules/.installed ## install the npm packages (and Node 24 if the system's is older)

BUILT_FROM = src console scripts packages config package.json package-lock.json tsconfig.json tsconfig.build.json

.PHONY: build
build: install ## compile to dist/ and put the OpenAPI documents beside it, if anything has changed
	@if [ ! -f dist/.built ] || [ -n "$$(find $(BUILT_FROM) -newer dist/.built -print -quit)" ]; then \
	  echo "building, about 15 s ..." >&2; $(WITH_NODE) rm -f dist/.built; npm run --silent build && touch dist/.built; fi

.PHONY: run
run: build ## start kcp on its embedded store and print the next commands
	@bin/kcp start --root-dir "$${KCP_ROOT:-.run/kcp}" --port "$${KCP_PORT:-6443}"

dist/src/cli/main.js: node_modules/.installed $(shell find src -name '*.ts' -newer dist/src/cli/main.js 2>/dev/null)
	@echo "building, about 15 s ..." >&2
	@$(WITH_NODE) npm run --silent build

.PHONY: demo
demo: dist/src/cli/main.js ## see it: two simulated members, an application that moves between them, eight things to type
	@bin/kcp start --demo

.PHONY: test
test: build ## everything: verify, unit, conformance, integration, syncer, moves, harness, parity, clients, faults, end-to-end; the last line counts
	@$(WITH_NODE) node scripts/test.ts all

.PHONY: test-long
test-long: build ## the same with more rounds and seeds, and the exhaustive specs of test/long: hours; before a release
	@$(WITH_NODE) node scripts/test.ts long

.PHONY: test-unit
test-unit: install ## unit tests beside the sources
	@$(WITH_NODE) node scripts/test.ts unit

.PHONY: test-conformance
test-conformance: build ## one suite per contract, on every implementation
	@$(WITH_NODE) node scripts/test.ts conformance

.PHONY: test-integration
test-integration: build ## our program against real kubectl and a real kube-apiserver
	@$(WITH_NODE) node scripts/test.ts integration integration-2 syncer moves

.PHONY: test-parity
test-parity: build ## the same requests to a logical cluster and to a real kube-apiserver; the answers must be equal
	@$(WITH_NODE) node scripts/test.ts parity

.PHONY: test-clients
test-clients: build ## Go, Rust, Java, Python and JavaScript clients, Helm, Flux, and manifests of well-known projects
	@$(WITH_NODE) node scripts/test.ts clients

.PHONY: test-e2e
test-e2e: build ## the main user story on a real host and two real members with pods; PROVIDER=kind: members of kind
	@$(WITH_NODE) KCP_TEST_CLUSTERS="$${KCP_TEST_CLUSTERS:-$(PROVIDER)}" node scripts/test.ts e2e e2e-2

.PHONY: conformance
conformance: build ## the Kubernetes end-to-end tests and shell tests of kubectl in two logical clusters at once; the last line counts, docs/reference/conformance.md has each result
	@$(WITH_NODE) node scripts/conformance.ts

.PHONY: bench
bench: build ## measure, side by side with a real kube-apiserver and etcd
	@$(WITH_NODE) node bench/main.ts

.PHONY: verify
verify: install ## types, lint, format, unused code, import rules, generated files
	@$(WITH_NODE) node scripts/verify.ts

.PHONY: lint
lint: install ## eslint and prettier
	@$(WITH_NODE) npm run --silent lint

.PHONY: manifests
manifests: install ## regenerate config/crd and config/rbac from src/crds, and the kustomize base from the chart
	@$(WITH_NODE) node scripts/manifests.ts && node scripts/kustomize-base.ts

.PHONY: docs
docs: install ## check the links of all documents and build the site of this version: dist/site (SOURCE_URL: the checkout at a code host)
	@$(WITH_NODE) node scripts/documents/build-site.ts $(if $(SOURCE_URL),--source-url "$(SOURCE_URL)")

.PHONY: reference
reference: install ## rewrite docs/reference/commands.md, docs/reference/fields.md and the numbers of docs/sizing.md
	@$(WITH_NODE) node scripts/documents/write-reference.ts

.PHONY: generate
generate: install ## regenerate the tables of built-in kinds from the pinned Kubernetes modules
	@$(WITH_NODE) node scripts/generate.ts

.PHONY: image
image: build ## build the container image without a container engine: dist/image/kcp.tar, an OCI archive
	@$(WITH_NODE) node scripts/image.ts

.PHONY: packages
packages: build ## build the npm package, the single file, the container image, the list of components: dist/packages
	@$(WITH_NODE) node scripts/packages.ts

.PHONY: clusters-up
clusters-up: install ## boot a real host and two real members to try out (members of kind where a container engine answers)
	@$(WITH_NODE) node scripts/clusters.ts up

.PHONY: clusters-down
clusters-down: install ## end the clusters of clusters-up
	@$(WITH_NODE) node scripts/clusters.ts down

.PHONY: clusters-list
clusters-list: install ## list the clusters of clusters-up
	@$(WITH_NODE) node scripts/clusters.ts list

.PHONY: kubectl
kubectl: install ## build kubectl from its Go module and print its path
	@$(WITH_NODE) node scripts/kubectl.ts

.PHONY: krew
krew: packages ## make archives and a manifest for krew in dist/krew; BASE_URL: the folder at which the archives will be
	@$(WITH_NODE) node scripts/krew.ts --base-url "$(BASE_URL)"

.PHONY: clean
clean: ## remove the build output and installed packages
	rm -rf dist node_modules .tools
