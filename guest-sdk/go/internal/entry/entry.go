// SPDX-License-Identifier: Apache-2.0

// Package entry lets package guesttest call a reconciler by messages, as a host
// does, without adding such calls to the public API.
package entry

import "github.com/wasmctl/wasmctl/guest-sdk/go/internal/imports"

// Names of the entry functions (abi/ABI.md, section 1).
const (
	Reconcile   = "reconcile"
	ErrorPolicy = "error_policy"
	Finalize    = "finalize"
	Map         = "map"
	Filter      = "filter"
	Configure   = "configure"
	Validate    = "validate"
	Default     = "default"
	Convert     = "convert"
)

// Call makes one entry call on a fresh guest with the given host. reconciler is
// a wasmctl.Reconciler. Package wasmctl sets it.
var Call func(host imports.Host, reconciler any, name string, msg []byte) (result []byte)

// Keep makes a call of the entry function filter.
var Keep func(host imports.Host, reconciler any, msg []byte) bool

// Client returns a *wasmctl.Client with the given host. Package wasmctl sets
// it.
var Client func(host imports.Host) any

// Problem returns the reason why a wasmctl.Reconciler cannot be registered, or
// "" if it can. Package wasmctl sets it.
var Problem func(reconciler any) string

// Describe returns the manifest of a wasmctl.Reconciler, as the entry function
// describe does. Package wasmctl sets it.
var Describe func(reconciler any) []byte
