// Package entry lets package guesttest call a reconciler the way a host does,
// by message, without such a call being in the public API.
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
)

// Call carries out one entry call on a fresh guest that has host as its host.
// reconciler is a wasmctl.Reconciler. Package wasmctl sets it.
var Call func(host imports.Host, reconciler any, name string, msg []byte) (result []byte)

// Keep is Call for the entry function filter.
var Keep func(host imports.Host, reconciler any, msg []byte) bool

// Client returns a *wasmctl.Client that has host as its host. Package wasmctl sets
// it.
var Client func(host imports.Host) any

// Problem says why a wasmctl.Reconciler cannot be registered; empty if it can.
// Package wasmctl sets it.
var Problem func(reconciler any) string

// Describe returns the manifest of a wasmctl.Reconciler as describe does.
// Package wasmctl sets it.
var Describe func(reconciler any) []byte
