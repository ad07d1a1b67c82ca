#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Checks that a new project builds with today's k8s-openapi and with the derive
# macro of kube, as docs/sdk-rust.md describes, and that its cases pass:
# scaffold-test.sh WASMCTL. If it cannot run, it prints a line with SKIPPED.
# Each step has a time limit.
set -eu

WASMCTL=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
SDK=$(cd "$(dirname "$0")/../.." && pwd)

skip() {
	echo "SKIPPED: $1: a new Rust project is not tested with k8s-openapi and kube" >&2
	exit 0
}

command -v cargo >/dev/null || skip "cargo is not on PATH"
[ "$(cargo --version | cut -d. -f2)" -ge 85 ] || skip "cargo is older than 1.85"
[ -d "$(rustc --print sysroot)/lib/rustlib/wasm32-unknown-unknown/lib" ] || skip "the rustc on PATH has no target wasm32-unknown-unknown"

DIR=$(mktemp -d)
trap 'rm -rf "$DIR"' EXIT

# If one of the next commands fails, the network is at fault; later failures are
# those of the project.
cargo new --quiet --lib --vcs none "$DIR/probe"
(cd "$DIR/probe" && timeout 60 cargo add --quiet k8s-openapi --features latest) || skip "there is no index of crates"

"$WASMCTL" new "$DIR/greeter" --lang rust --kind Greeting.example.com/v1 --sdk "$SDK" >/dev/null
cd "$DIR/greeter"
timeout 60 cargo add --quiet k8s-openapi --features latest,schemars
timeout 60 cargo add --quiet kube --no-default-features --features derive
timeout 60 cargo add --quiet serde --features derive
timeout 60 cargo add --quiet schemars serde_json
timeout 60 cargo update --quiet

cat >src/greeting.rs <<'RUST'
use k8s_openapi::api::core::v1::ConfigMap;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(group = "example.com", version = "v1", kind = "Greeting", namespaced)]
pub struct GreetingSpec {
    pub text: String,
}

wasmctl::resource!(Greeting, "example.com/v1", "Greeting");

/// Uses the types of both crates.
pub fn check(obj: &wasmctl::Object) -> Result<(), wasmctl::Error> {
    let greeting: Greeting = obj.decode(&[])?;
    assert_eq!(greeting.spec.text, obj.str(&["spec", "text"]));
    let map = ConfigMap { metadata: greeting.metadata, ..ConfigMap::default() };
    drop(wasmctl::Action::apply(&map));
    Ok(())
}
RUST
sed -i 's/^mod reconcile;/mod greeting;\nmod reconcile;/' src/lib.rs
sed -i 's/^pub fn reconcile(.*{$/&\n    crate::greeting::check(obj)?;/' src/reconcile.rs
grep -q greeting::check src/reconcile.rs

timeout "${SCAFFOLD_TEST_SECONDS:-900}" "$WASMCTL" build >"$DIR/build" 2>&1 || {
	cat "$DIR/build" >&2
	echo "scaffold-test.sh: a new Rust project with k8s-openapi and kube does not build" >&2
	exit 1
}
grep greeter.wasm: "$DIR/build"
timeout 120 "$WASMCTL" test greeter.wasm cases
