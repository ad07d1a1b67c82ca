// Package entry lets package guesttest call a reconciler the way a host does,
// by message, without such a call being in the public API.
package entry

import "github.com/wasmctl/wasmctl/guest-sdk/go/internal/imports"

// Names of the entry functions (abi/ABI.md, section 1).
const (
	Reconcile   = "reconcile"
	ErrorPolicy = "error_policy"
)

// Call carries out one entry call on a fresh guest that has host as its host.
// reconciler is a wasmctl.Reconciler. Package wasmctl sets it.
var Call func(host imports.Host, reconciler any, name string, msg []byte) (result []byte)

// Describe returns the manifest of a wasmctl.Reconciler as describe does.
// Package wasmctl sets it.
var Describe func(reconciler any) []byte
