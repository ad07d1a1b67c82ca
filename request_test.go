// SPDX-License-Identifier: Apache-2.0

package wasmctl

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/wasmctl/wasmctl/abi"
)

// TestDecode_OpaqueJSONIsUnchanged: a native reconciler gets the text of a RawExtension.
func TestDecode_OpaqueJSONIsUnchanged(t *testing.T) {
	const js = `{"z": 1.0,"a":2e0,"u":18446744073709551615,"s":"<"}`
	packed, err := abi.AppendValue(abi.AppendMapHead(nil, 2), "data")
	if err != nil {
		t.Fatal(err)
	}
	packed = abi.AppendOpaque(packed, []byte(js))
	for _, v := range []any{"metadata", map[string]any{"name": "a"}} {
		if packed, err = abi.AppendValue(packed, v); err != nil {
			t.Fatal(err)
		}
	}
	var revision appsv1.ControllerRevision
	if err := decode(packed, &revision); err != nil || revision.Name != "a" || string(revision.Data.Raw) != js {
		t.Errorf("%+v, %v", revision, err)
	}
	var object map[string]any
	if err := decode(packed, &object); err != nil || object["data"].(map[string]any)["a"] != 2.0 { //nolint:forcetypeassert // a panic fails the test
		t.Errorf("%v, %v", object, err)
	}
}
