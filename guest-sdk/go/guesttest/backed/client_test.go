// SPDX-License-Identifier: Apache-2.0

package backed_test

import (
	"testing"

	wasmctl "github.com/wasmctl/wasmctl/guest-sdk/go"
	"github.com/wasmctl/wasmctl/guest-sdk/go/guesttest/backed"
)

// TestClient_AsksTheFunction: the function receives each operation with its
// request, and bodies and errors of any size reach the caller.
func TestClient_AsksTheFunction(t *testing.T) {
	long := string(make([]byte, 100_000))
	details, err := wasmctl.NewValue(wasmctl.Map{"name": "a"})
	if err != nil {
		t.Fatal(err)
	}
	c := backed.Client(func(op string, msg map[string]any) (any, *wasmctl.Error) {
		if op != "api_get" {
			return nil, &wasmctl.Error{Status: 409, Reason: "Conflict", Message: op, Details: details}
		}
		return wasmctl.Map{"kind": msg["kind"], "metadata": wasmctl.Map{"name": msg["name"]}, "data": long}, nil
	})
	ref := wasmctl.ObjectRef{APIVersion: "v1", Kind: "ConfigMap", Name: "a"}
	obj, err := c.Get(ref, wasmctl.GetOptions{})
	if err != nil || obj.Name() != "a" || obj.Kind() != "ConfigMap" || obj.String("data") != long {
		t.Errorf("%s %s, %v", obj.Kind(), obj.Name(), err)
	}
	err = c.Delete(ref, wasmctl.DeleteOptions{})
	e, ok := wasmctl.AsError(err)
	if !ok || !wasmctl.IsConflict(err) || e.Message != "api_delete" || e.Details.String("name") != "a" {
		t.Errorf("%v", err)
	}
}
