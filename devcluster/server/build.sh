#!/bin/sh
# build.sh [OUTPUT]: builds the devcluster binary (default ./devcluster): pure
# Go, static, stripped. OUTPUT is relative to the caller's directory.
#
# -trimpath and CGO_ENABLED=0 are part of every cached object's key: built
# without them, 500 CPU seconds of Kubernetes are compiled once more.
set -eu
out=${1:-devcluster}
case $out in /*) ;; *) out=$PWD/$out ;; esac
cd "$(dirname "$0")"
version=$(go list -m -f '{{.Version}}' k8s.io/kubernetes)
minor=${version#v1.}
minor=${minor%%.*}
# kubectl and the discovery clients compare versions: without these the server
# says v0.0.0.
pkg=k8s.io/component-base/version
CGO_ENABLED=0 exec go build -trimpath -o "$out" -ldflags "-s -w \
  -X $pkg.gitVersion=$version -X $pkg.gitMajor=1 -X $pkg.gitMinor=$minor \
  -X $pkg.gitTreeState=clean" .
