// SPDX-License-Identifier: Apache-2.0

// Package program runs main of a module, and passes its declarations to the
// host.
package program

import (
	"errors"
	"sync/atomic"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"
)

// Choose returns the controller with a name.
type Choose func(name string) (wasmctl.Reconciler, error)

// started receives the argument that main passes to Start.
var started = make(chan func() Choose, 1)

// early means that main is running and has not started the manager yet.
var early atomic.Bool

// Early reports whether main is running and has not started the manager yet.
// There is no API server at that time: main determines the manifest during the
// build, and must start with the same answers in each instance.
func Early() bool { return early.Load() }

// Start must be called once main has declared all controllers. declared then
// does the work that does not depend on the controller that the module runs as.
func Start(declared func() Choose) error {
	early.Store(false)
	select {
	case started <- declared:
		return nil
	default:
		return errors.New("manager: a second manager was started; a module has one: build the other one as a separate module")
	}
}

// begin runs main until it calls Start, and returns a function that finds a
// controller by name.
func begin(main func()) Choose {
	early.Store(true)
	returned := make(chan struct{})
	go func() {
		defer close(returned)
		main()
	}()
	select {
	case declared := <-started:
		logKlog()
		return declared()
	case <-returned:
		return func(string) (wasmctl.Reconciler, error) {
			return wasmctl.Reconciler{}, errors.New("main: returned before the manager was started; call mgr.Start(ctrl.SetupSignalHandler())")
		}
	}
}
