// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"testing"

	"github.com/wasmctl/wasmctl/abi"
)

func TestAnnotateByHand_NamesTheNamespaceAndTheChange(t *testing.T) {
	for want, c := range map[string]struct {
		object abi.Key
		paused bool
	}{
		"kubectl annotate webapps.example.dev web wasmctl.dev/paused=true -n shop": {abi.Key{Namespace: "shop", Name: "web"}, true},
		"kubectl annotate webapps.example.dev web wasmctl.dev/paused- -n shop":     {abi.Key{Namespace: "shop", Name: "web"}, false},
		"kubectl annotate webapps.example.dev web wasmctl.dev/paused=true":         {abi.Key{Name: "web"}, true},
	} {
		if got := annotateByHand("webapps.example.dev", c.object, c.paused); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
