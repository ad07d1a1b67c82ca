// SPDX-License-Identifier: Apache-2.0

package operation

import (
	"bytes"
	"testing"

	"github.com/wasmctl/wasmctl/abi"
)

// TestReadable_OnlyGuestsThatReadOpaqueJSONGetIt: others get the decoded value.
func TestReadable_OnlyGuestsThatReadOpaqueJSONGetIt(t *testing.T) {
	object, err := abi.AppendValue(abi.AppendMapHead(nil, 1), "data")
	if err != nil {
		t.Fatal(err)
	}
	object = abi.AppendOpaque(object, []byte(`{"b":1.5,"a":[]}`))
	decoded, err := abi.AppendValue(nil, map[string]any{"data": map[string]any{"a": []any{}, "b": 1.5}})
	if err != nil {
		t.Fatal(err)
	}
	for opaque, want := range map[bool][]byte{true: object, false: decoded} {
		e := Env{Opaque: opaque}
		if got, err := e.Readable(object); err != nil || !bytes.Equal(got, want) {
			t.Errorf("opaque %v: %x, %v", opaque, got, err)
		}
	}
}
