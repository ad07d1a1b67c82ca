#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Converts each .wat of this folder to the .wasm beside it. Needs wat2wasm of
# wabt (Debian: apt-get install wabt). The same input gives the same bytes.
set -eu
cd "$(dirname "$0")"
command -v wat2wasm >/dev/null || {
	echo "build.sh: wat2wasm is missing: install wabt" >&2
	exit 1
}
for wat in *.wat; do
	wat2wasm -o "${wat%.wat}.wasm" "$wat"
done
