// SPDX-License-Identifier: Apache-2.0

package managed

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmctl/wasmctl/abi"
)

const owner = "6d2b6a31-8fd5-4bb4-9f2e-0a3c8a8f5a01"

// fields is the msgpack of managedFields of a child of an owner.
func fields(t *testing.T, uid string) []byte {
	t.Helper()
	list := []any{
		map[string]any{"manager": "wasmctl/a", "operation": "Apply", "apiVersion": "v1", "time": uid, "fieldsType": "FieldsV1", "fieldsV1": own(uid)},
		map[string]any{"manager": "wasmctl/a", "operation": "Apply", "apiVersion": "v1", "subresource": "status", "fieldsV1": map[string]any{}},
		map[string]any{"manager": "kubectl", "operation": "Update", "apiVersion": "v1", "fieldsV1": own(uid)},
	}
	b, err := abi.AppendValue(nil, list)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func own(uid string) map[string]any {
	return map[string]any{"f:metadata": map[string]any{"f:ownerReferences": map[string]any{`k:{"uid":"` + uid + `"}`: map[string]any{}}}}
}

func TestEntries_AreThoseThatAppendTook(t *testing.T) {
	want, err := abi.AppendValue(nil, own(owner))
	if err != nil {
		t.Fatal(err)
	}
	got := slices.Collect(Entries(string(Append([]byte{}, fields(t, owner), owner)), owner))
	if diff := cmp.Diff([]Entry{{"wasmctl/a", true, "v1", string(want)}, {Manager: "kubectl"}}, got); diff != "" {
		t.Error(diff)
	}
}

func TestAppend_ChildrenOfOneTemplateAreEqual(t *testing.T) {
	const other = "11111111-2222-3333-4444-555555555555"
	if a, b := Append(nil, fields(t, owner), owner), Append(nil, fields(t, other), other); string(a) != string(b) || len(a) == 0 {
		t.Errorf("%q\n%q", a, b)
	}
}

func TestAppend_WithoutAnApplyNothing(t *testing.T) {
	b, err := abi.AppendValue(nil, []any{map[string]any{"manager": "kubectl", "operation": "Update", "apiVersion": "v1"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, fields := range [][]byte{nil, {0xc0}, b, append([]byte{0x91}, apply...)} {
		if got := Append(nil, fields, owner); len(got) != 0 {
			t.Errorf("%q: %q", fields, got)
		}
	}
}

// Append never panics, and Entries reads what it returns.
func FuzzAppend(f *testing.F) {
	f.Add([]byte("\x91\x84\xa9operation\xa5Apply"), owner)
	f.Fuzz(func(_ *testing.T, fields []byte, uid string) {
		for e := range Entries(string(Append(nil, fields, uid)), uid) {
			_ = e
		}
	})
}
