// Package program runs main of a module, and hands what it declares to the host.
package program

import (
	"errors"
	"sync/atomic"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"
)

// Choose returns the controller of a name.
type Choose func(name string) (wasmctl.Reconciler, error)

// started receives what main gives to Start.
var started = make(chan func() Choose, 1)

// early says that main runs, and has not started the manager.
var early atomic.Bool

// Early reports whether main runs, and has not started the manager. There is no API
// server to ask then: main decides the manifest at build, and starts alike in each instance.
func Early() bool { return early.Load() }

// Start is called once main has declared all controllers. declared does then what does
// not depend on the controller that the module runs as.
func Start(declared func() Choose) error {
	early.Store(false)
	select {
	case started <- declared:
		return nil
	default:
		return errors.New("manager: a second manager was started; a module has one: run the other one as a module of its own")
	}
}

// begin runs main until it calls Start, and returns what finds the controller of a name.
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
