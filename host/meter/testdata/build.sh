#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds the guests of this folder. loops.wasm needs wat2wasm of wabt,
# rustguest.wasm a Rust toolchain with the target wasm32-unknown-unknown. The Go
# guest is built by the benchmarks themselves.
set -eu
cd "$(dirname "$0")"
# rustguest.wasm stays out of the repository.
wat2wasm loops.wat -o loops.wasm
(cd rustguest && cargo build --release --target wasm32-unknown-unknown)
cp rustguest/target/wasm32-unknown-unknown/release/rustguest.wasm .
