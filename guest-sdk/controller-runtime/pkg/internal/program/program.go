// Package program runs main of a module, and hands what it declares to the host.
package program

import (
	"errors"
	"sync/atomic"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"
)

// started receives what main gives to Start.
var started = make(chan func(name string) (wasmctl.Reconciler, error), 1)

// early says that main runs, and has not started the manager.
var early atomic.Bool

// Early reports whether main runs, and has not started the manager. There is no API
// server to ask then: main decides the manifest at build, and starts alike in each instance.
func Early() bool { return early.Load() }

// Start is called once main has declared all controllers. reconciler returns the
// one of a name.
func Start(reconciler func(name string) (wasmctl.Reconciler, error)) error {
	early.Store(false)
	select {
	case started <- reconciler:
		return nil
	default:
		return errors.New("manager: a second manager was started; a module has one: run the other one as a module of its own")
	}
}

// load runs main until it calls Start, and returns the controller of that name.
func load(main func(), name string) (wasmctl.Reconciler, error) {
	early.Store(true)
	returned := make(chan struct{})
	go func() {
		defer close(returned)
		main()
	}()
	select {
	case reconciler := <-started:
		logKlog()
		return reconciler(name)
	case <-returned:
		return wasmctl.Reconciler{}, errors.New("main: returned before the manager was started; call mgr.Start(ctrl.SetupSignalHandler())")
	}
}
