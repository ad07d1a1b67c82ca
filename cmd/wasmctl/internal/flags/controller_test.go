package flags

import (
	"testing"

	"github.com/spf13/cobra"

	"github.com/wasmctl/wasmctl"
)

// controllerFlags parses flags as run does.
func controllerFlags(t *testing.T, args ...string) (*Controller, error) {
	t.Helper()
	o, cmd := &Controller{}, &cobra.Command{}
	o.Bind(cmd)
	if err := cmd.ParseFlags(args); err != nil {
		t.Fatal(err)
	}
	return o, o.Validate()
}

// optionsFor returns the options that flags mean.
func optionsFor(t *testing.T, args ...string) wasmctl.ControllerOptions {
	t.Helper()
	o, err := controllerFlags(t, args...)
	if err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	options, err := o.Options(&Files{}, nil, false)
	if err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	return options
}
