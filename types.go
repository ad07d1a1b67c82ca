// SPDX-License-Identifier: Apache-2.0

package wasmctl

import (
	"context"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/api/v1alpha1"
	"github.com/wasmctl/wasmctl/runtime/history"
)

// Notes store a text for each key, of at most some KiB. The text of a key that was not set is
// empty.
type Notes interface {
	Note(ctx context.Context, key string) (string, error)
	SetNote(ctx context.Context, key, value string) error
}

// Write is a write that the API server has answered, with the changes that it made.
type Write struct {
	history.Operation

	// Run is the object whose run wrote. It is empty for a write of the host.
	Run abi.Key
	// Event is the text of an event that a dry run would have recorded; Operation is then
	// empty.
	Event string
	// ID distinguishes writes to the same object, such as those of several patches.
	ID string
}

// SwapOptions say how a module is swapped in. The zero value follows the options of the
// controller.
type SwapOptions struct {
	// Canary, if not nil, replaces that of the controller. A Time of 0s waits for Promote or
	// Abort.
	Canary *v1alpha1.Canary
	// Force tries a module again that was rolled back.
	Force bool
	// Why is the reason, for the log.
	Why string
}
