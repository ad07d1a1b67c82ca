// SPDX-License-Identifier: Apache-2.0

package manager

import wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"

// Pause is pause.
var Pause = pause

// Reconciler returns the reconciler that Start passes to the host.
func Reconciler(m Manager, name string) (wasmctl.Reconciler, error) {
	return m.(*module).declared()(name) //nolint:forcetypeassert // the only implementation
}
