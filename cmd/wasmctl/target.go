// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/internal/failure"
	"github.com/wasmctl/wasmctl/runtime/admin"
)

// target is the controller and the namespace of the objects that a command is about. The controller
// can be omitted if the process has only one.
type target struct{ controller, namespace string }

func (t *target) bind(cmd *cobra.Command) {
	cmd.Flags().StringVar(&t.controller, "controller", "", "Name the `controller`, instead of as the first argument")
	cmd.Flags().StringVarP(&t.namespace, "namespace", "n", "", "Set the `namespace` of objects that are named without one (default: default)")
}

// resolve parses [CONTROLLER] [[NAMESPACE/]NAME...], given the names of the process's controllers. If
// the namespace is set, args must name at least one object.
func (t *target) resolve(args, known []string) (controller string, keys []abi.Key, err error) {
	if controller, args, err = t.splitController(args, known); err != nil {
		return "", nil, err
	}
	if keys, err = parseKeys(args, t.namespace); err == nil && t.namespace != "" && len(keys) == 0 {
		err = failure.Usage.Wrap(errors.New("--namespace is set: the name of an object is missing"))
	}
	return controller, keys, err
}

// of reaches the processes, and resolves the arguments with the names of their controllers.
func (t *target) of(ctx context.Context, o *steerOptions, args []string) (f fleet, controller string, keys []abi.Key, err error) {
	if f, err = o.reach(ctx); err != nil {
		return nil, "", nil, err
	}
	controller, keys, err = t.resolve(args, f.names())
	if errors.Is(err, admin.ErrUnknown) {
		err = f.hint(ctx, args[0], err)
	}
	return f, controller, keys, err
}

// splitController returns the controller at the beginning of args, or the only controller, and the
// other arguments.
func (t *target) splitController(args, known []string) (controller string, objects []string, err error) {
	if t.controller != "" {
		return t.controller, args, nil
	}
	named := len(args) > 0 && slices.Contains(known, args[0])
	if len(known) == 1 && (!named || len(args) == 1 && t.namespace != "") {
		return known[0], args, nil
	}
	if named {
		return args[0], args[1:], nil
	}
	err = errors.New("CONTROLLER is missing")
	if len(args) > 0 && !strings.Contains(args[0], "/") {
		err = fmt.Errorf("controller[%s]: %w", args[0], admin.ErrUnknown)
	}
	return "", nil, failure.Usage.Wrap(runsThese(err, known))
}

// runsThese adds the names of the process's controllers to an error.
func runsThese(err error, known []string) error {
	return fmt.Errorf("%w; the process runs: %s", err, cmp.Or(strings.Join(known, ", "), "no controllers"))
}

// namesOf returns the names of the controllers in a status.
func namesOf(st *admin.Status) []string {
	names := make([]string, len(st.Controllers))
	for i := range st.Controllers {
		names[i] = st.Controllers[i].Name
	}
	return names
}

// parseKeys parses the names of objects. namespace applies to names without a namespace.
func parseKeys(names []string, namespace string) ([]abi.Key, error) {
	keys := make([]abi.Key, len(names))
	for i, name := range names {
		ns, rest, ok := strings.Cut(name, "/")
		if !ok {
			ns, rest = namespace, name
		}
		switch {
		case rest == "" || ok && ns == "" || strings.Contains(rest, "/"):
			return nil, failure.Usage.Wrap(fmt.Errorf("object %q: want NAMESPACE/NAME or NAME", name))
		case ok && namespace != "" && ns != namespace:
			return nil, failure.Usage.Wrap(fmt.Errorf("object %q: is not in --namespace %s", name, namespace))
		}
		keys[i] = abi.Key{Namespace: ns, Name: rest}
	}
	return keys, nil
}
