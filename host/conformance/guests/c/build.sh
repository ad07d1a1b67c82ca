#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds the guest: ./build.sh OUT.wasm. Needs clang and wasm-ld (Debian: clang
# and lld); CLANG names another clang.
set -eu
cd "$(dirname "$0")"
exec "${CLANG:-clang}" --target=wasm32 -std=c11 -Os -Wall -Wextra -Werror -ffreestanding -fno-builtin -nostdlib \
	-Wl,--no-entry -Wl,--stack-first -Wl,-z,stack-size=1048576 -Wl,--strip-all -o "$1" ./*.c
