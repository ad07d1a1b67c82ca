// SPDX-License-Identifier: Apache-2.0

// Package share divides what the modules of a process have in common: memory (Budget and
// Account), CPU time (CPUScheduler, in slices of fuel), and what each may use (Limits).
// The Watchdog notices calls that do not end. Nothing in here knows a module's code.
package share

import (
	"errors"
	"sync/atomic"

	"github.com/wasmctl/wasmctl/abi"
)

var (
	// ErrFuel matches the error of a call that used more than Limits.Fuel.
	ErrFuel = errors.New("ran out of fuel")
	// ErrStack matches the error of a guest whose calls are nested too deeply.
	ErrStack = errors.New("stack overflow: calls nested too deeply")
)

// PageSize is the size of a page of linear memory, in bytes.
const PageSize = 64 << 10

// Module counts what all instances of a module use together. The zero Module is ready for
// use, by any number of goroutines.
type Module struct {
	Tenant   string        // shares CPU time with other tenants; must not be changed
	Short    *ShortCalls   // of the tenant; must not be changed; may be nil
	Fuel     atomic.Uint64 // fuel that was used
	Memory   atomic.Int64  // linear memory of all instances, in bytes
	Rate     Bucket        // fuel of a second, which is paid for after it was used
	Fresh    Bucket        // instances of a second
	Hits     Tally[abi.LimitName]
	Recycled Tally[string]
}
