#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# build.sh [OUTPUT [VERSION]]: builds the devcluster binary (default ./devcluster):
# pure Go, static, stripped. OUTPUT is relative to the caller's directory. On a
# terminal one line says how far it is. VERSION, such as 1.33, is that of
# Kubernetes: the file go-VERSION.mod pins it, and go.mod the newest.
#
# -trimpath and CGO_ENABLED=0 are part of every cached object's key: built
# without them, 500 CPU seconds of Kubernetes are compiled once more.
set -eu
out=${1:-devcluster}
case $out in /*) ;; *) out=$PWD/$out ;; esac
cd "$(dirname "$0")"
export CGO_ENABLED=0
mod=go-${2:-}.mod
[ -f "$mod" ] || mod=go.mod
version=$(go list -modfile="$mod" -m -f '{{.Version}}' k8s.io/kubernetes)
case $version in v${2:-1}.*) ;; *)
  echo "devcluster: there is no go-$2.mod: go.mod has $version, and others have: $(ls go-*.mod)" >&2
  exit 1 ;;
esac
minor=${version#v1.}
minor=${minor%%.*}
# kubectl and the discovery clients compare versions: without these the server
# says v0.0.0.
pkg=k8s.io/component-base/version
build() {
  go build "$@" -modfile="$mod" -trimpath -o "$out" -ldflags "-s -w \
    -X $pkg.gitVersion=$version -X $pkg.gitMajor=1 -X $pkg.gitMinor=$minor \
    -X $pkg.gitTreeState=clean" .
}
if ! [ -t 2 ]; then
  build
  exit
fi
# go build -v names each package that it compiles: those that are built already are
# not among them. Anything else that it says is passed on.
all=$(go list -modfile="$mod" -deps . | wc -l)
failed=$(mktemp)
{ build -v 2>&1 || echo failed >"$failed"; } | awk -v all="$all" '
  /^[^ :#]+$/ { printf "\r\033[Kcompiled %d packages, of at most %d", ++n, all; fflush(); next }
  { printf "\r\033[K%s\n", $0 }
  END { printf "\r\033[K" }' >&2
result=$(cat "$failed")
rm -f "$failed"
[ -z "$result" ]
