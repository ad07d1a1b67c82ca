// Package program runs main of a module, and hands what it declares to the host.
package program

import (
	"errors"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"

	"sigs.k8s.io/controller-runtime/pkg/internal/rules"
)

// started receives what main gives to Start.
var started = make(chan func(name string) (wasmctl.Reconciler, error), 1)

// Start is called once main has declared all controllers. reconciler returns the
// one of a name.
func Start(reconciler func(name string) (wasmctl.Reconciler, error)) error {
	select {
	case started <- reconciler:
		return nil
	default:
		return errors.New("manager: a second manager was started; a module has one: run the other one as a module of its own")
	}
}

// load runs main until it calls Start, and returns the controller of that name.
func load(main func(), name string) (wasmctl.Reconciler, error) {
	returned := make(chan struct{})
	go func() {
		defer close(returned)
		main()
	}()
	select {
	case reconciler := <-started:
		r, err := reconciler(name)
		if err != nil {
			return r, err
		}
		asked, err := rules.Capabilities()
		r.Manifest.Capabilities = append(r.Manifest.Capabilities, asked...)
		return r, err
	case <-returned:
		return wasmctl.Reconciler{}, errors.New("main: returned before the manager was started; call mgr.Start(ctrl.SetupSignalHandler())")
	}
}
