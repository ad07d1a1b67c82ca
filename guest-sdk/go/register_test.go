// SPDX-License-Identifier: Apache-2.0

package wasmctl

import (
	"errors"
	"strings"
	"testing"
)

// TestRegisterFunc_IsAskedOnceAndItsErrorStays: the result of the first call is
// final.
func TestRegisterFunc_IsAskedOnceAndItsErrorStays(t *testing.T) {
	noop := Reconciler{Reconcile: func(*Context, Object) (Action, error) { return AwaitChange(), nil }}
	for _, c := range []struct {
		name string
		r    Reconciler
		err  error
		want string
	}{
		{"fine", noop, nil, ""},
		{"an error", Reconciler{}, errors.New("main: exited"), "main: exited"},
		{"parts that do not fit", Reconciler{}, nil, "Reconciler.Reconcile is nil"},
	} {
		t.Run(c.name, func(t *testing.T) {
			defer func() { registered, pending, refused = nil, nil, nil }()
			asked := 0
			RegisterFunc(func() (Reconciler, error) { asked++; return c.r, c.err })
			for range 3 {
				r, err := current()
				if (r == nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
					t.Fatalf("%v, %v; want %q", r, err, c.want)
				}
			}
			if asked != 1 {
				t.Errorf("asked %d times", asked)
			}
		})
	}
}
