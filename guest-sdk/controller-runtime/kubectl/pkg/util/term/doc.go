// Package term has no code that is used natively. wasmctl build puts its other file
// into k8s.io/kubectl, which asks for a signal that wasip1 does not have: programs use that
// library to run commands in containers.
package term
