#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes sure that Rust can build for WebAssembly. It does nothing if Rust
# already can. If rustup cannot add a target, Debian's compiler can be used: as
# root, the script installs its packages. It reports its actions and failures on
# stderr. With --check it only checks.
#
#     toolchain.sh [--check] [TARGET]
set -u

CHECK=
[ "${1-}" != --check ] || { CHECK=yes && shift; }
TARGET=${1:-wasm32-unknown-unknown}

has_target() { # of the rustc that is named
	sysroot=$("$1" --print sysroot 2>/dev/null) && [ -d "$sysroot/lib/rustlib/$2/lib" ]
}

debian() { [ -x /usr/bin/cargo ] && command -v wasm-ld >/dev/null && has_target /usr/bin/rustc "$1"; }

# Until 1.78 the target wasm32-wasip1 was called wasm32-wasi.
ready() { has_target rustc "$TARGET" || debian "$TARGET" || { [ "$TARGET" = wasm32-wasip1 ] && debian wasm32-wasi; }; }

ready && exit 0
[ -z "$CHECK" ] || exit 1
if command -v rustup >/dev/null && rustup target add "$TARGET" >/dev/null 2>&1 && ready; then
	echo "toolchain.sh: added $TARGET with rustup" >&2
	exit 0
fi
if command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
	echo "toolchain.sh: installing rustc, cargo, libstd-rust-dev-wasm32 and lld with apt-get" >&2
	export DEBIAN_FRONTEND=noninteractive
	install="apt-get install -y -qq --no-install-recommends rustc cargo libstd-rust-dev-wasm32 lld"
	{ $install || { apt-get update -qq && $install; }; } >/dev/null 2>&1
	ready && exit 0
fi
echo "toolchain.sh: no Rust for $TARGET: rustup target add $TARGET, or the Debian packages rustc cargo libstd-rust-dev-wasm32 lld" >&2
exit 1
