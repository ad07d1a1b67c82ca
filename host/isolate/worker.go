// SPDX-License-Identifier: Apache-2.0

package isolate

import "context"

// Charge implements operation.Worker: the process charges the guest.
func (r *remote) Charge(int) {}

// Pause implements operation.Worker: the instance has no turn of a CPU in this process.
func (r *remote) Pause() (had bool) { return false }

// Resume implements operation.Worker.
func (r *remote) Resume(bool) {}

// Cancel implements operation.Worker.
func (r *remote) Cancel(cancel *context.CancelFunc) (interrupted bool) {
	return r.core.Interrupt().OnOperation(cancel)
}
