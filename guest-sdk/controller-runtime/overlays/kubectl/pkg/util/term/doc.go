// SPDX-License-Identifier: Apache-2.0

// Package term has no code for native programs. wasmctl build adds its other file to
// k8s.io/kubectl, which listens for a signal that wasip1 does not have. Programs use that
// library to run commands in containers.
package term
