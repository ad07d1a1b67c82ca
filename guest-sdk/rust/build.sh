#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds the module of a crate for WebAssembly: build.sh DIR OUT.wasm [TARGET].
# It uses the Rust on PATH if that has the target, otherwise Debian's (see
# toolchain.sh). Debian's cargo is too old for today's crate index, so a newer
# cargo on PATH fetches the crates of Cargo.lock.
set -eu

DIR=$(cd "$1" && pwd)
mkdir -p "$(dirname "$2")"
OUT=$(cd "$(dirname "$2")" && pwd)/$(basename "$2")
TARGET=${3:-wasm32-unknown-unknown}
: "${CARGO_TARGET_DIR:=$DIR/target}"
export CARGO_TARGET_DIR

has_target() {
	sysroot=$("$1" --print sysroot 2>/dev/null) && [ -d "$sysroot/lib/rustlib/$TARGET/lib" ]
}

# The messages of panics name files: leave the folders of this machine out of
# them.
SDK=$(cd "$(dirname "$0")" && pwd)
RUSTFLAGS="${RUSTFLAGS-} --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo --remap-path-prefix=$CARGO_TARGET_DIR/vendor=/cargo \
	--remap-path-prefix=$SDK=/sdk --remap-path-prefix=$SDK-kube=/sdk-kube"
export RUSTFLAGS
# This one is for the crate alone: with other RUSTFLAGS cargo builds all dependencies
# again, and the crates of this repository share a target folder.
OWN=--remap-path-prefix=$DIR=/src

cd "$DIR"
NAME=$(sed -n 's/^name = "\(.*\)"/\1/p' Cargo.toml | head -n 1 | tr - _)
if has_target rustc; then
	cargo rustc --quiet --locked --release --lib --target "$TARGET" -- "$OWN"
else
	vendor=$CARGO_TARGET_DIR/vendor/$NAME
	if [ "$(command -v cargo)" != /usr/bin/cargo ] && ! cmp -s Cargo.lock "$vendor/Cargo.lock"; then
		rm -rf "$vendor" && mkdir -p "$vendor"
		cargo vendor --quiet --locked "$vendor" >/dev/null
		cp Cargo.lock "$vendor/Cargo.lock"
	fi
	# Until 1.78 the target wasm32-wasip1 was called wasm32-wasi.
	[ "$TARGET" != wasm32-wasip1 ] || has_target /usr/bin/rustc || TARGET=wasm32-wasi
	PATH=/usr/bin:/bin
	RUSTC=/usr/bin/rustc
	CARGO_TARGET_DIR=$CARGO_TARGET_DIR/debian
	export PATH RUSTC CARGO_TARGET_DIR
	if [ -d "$vendor" ]; then
		cargo --config 'source.crates-io.replace-with="vendored"' --config "source.vendored.directory=\"$vendor\"" \
			rustc --quiet --locked --offline --release --lib --target "$TARGET" -- "$OWN"
	else
		cargo rustc --quiet --locked --release --lib --target "$TARGET" -- "$OWN"
	fi
fi
cp "$CARGO_TARGET_DIR/$TARGET/release/$NAME.wasm" "$OUT"
