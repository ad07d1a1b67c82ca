// SPDX-License-Identifier: Apache-2.0

// Package devcluster starts a local Kubernetes control plane, for tests and for development: a real kube-apiserver and etcd, with RBAC and
// the controllers that a controller developer needs.
//
// The control plane is the program devcluster, whose source is the module in server/. This package only runs it as a child process, so that
// its dependencies, which pin every k8s.io module, grpc and opentelemetry, do not become dependencies of the importing module. Tests use
// package devclustertest, which is based on this one.
//
// A child never outlives its parent: it stops when its standard input ends, which the kernel ensures however the parent dies.
package devcluster
