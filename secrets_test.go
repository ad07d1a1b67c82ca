// SPDX-License-Identifier: Apache-2.0

package wasmctl

import (
	"errors"
	"strings"
	"testing"

	"github.com/wasmctl/wasmctl/api/v1alpha1"
	"github.com/wasmctl/wasmctl/host/redact"
	"github.com/wasmctl/wasmctl/testdata/wasm"
)

// TestSecrets_SettingsAreHiddenInErrors: the module refuses a setting in words that equal its value. They are hidden at the start, and after a
// change of the settings of a running module.
func TestSecrets_SettingsAreHiddenInErrors(t *testing.T) {
	r := newGuests(t)
	const secret = "bad colour" // the message of the module
	hidden := func(what, text string) {
		t.Helper()
		if strings.Contains(text, secret) || !strings.Contains(text, redact.Mark) {
			t.Errorf("%s: %q", what, text)
		}
	}
	o := r.options("secrets")
	o.Config, o.Secrets = v1alpha1.Config{"word": secret}, []string{secret}
	_, err := r.Load(t.Context(), Bytes(wasm.Configure), o)
	if !errors.Is(err, ErrRefused) {
		t.Fatalf("started with a setting that it refuses: %v", err)
	}
	hidden("the error of the start", err.Error())

	fine := o
	fine.Config, fine.Secrets = v1alpha1.Config{"word": "fine"}, nil
	c, err := r.Load(t.Context(), Bytes(wasm.Configure), fine)
	if err != nil {
		t.Fatal(err)
	}
	err = c.Want(t.Context(), Bytes(wasm.Configure), o, SwapOptions{})
	if !errors.Is(err, ErrSettings) {
		t.Fatalf("took a setting that it refuses: %v", err)
	}
	hidden("the error of other settings", err.Error())
}
