// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"testing"

	"github.com/wasmctl/wasmctl/abi"
)

// TestCompare_DeniedMayLeaveFieldsOut: a message is a part of the text, and absent fields match anything.
func TestCompare_DeniedMayLeaveFieldsOut(t *testing.T) {
	seen := &Expect{Action: noRun, Denied: deniedOf(&abi.Denial{Code: 422, Reason: "Invalid", Message: "spec.a: is odd", Causes: []abi.Cause{{Field: "spec.a", Message: "is odd"}, {Message: "no"}}})}
	for _, tc := range []struct {
		want   *Denied
		passes bool
	}{
		{&Denied{}, true},
		{&Denied{Message: "is odd", Code: 422}, true},
		{&Denied{Reason: "Invalid", Causes: []string{"spec.a: is odd", "no"}}, true},
		{&Denied{Code: 403}, false},
		{&Denied{Message: "is even"}, false},
		{&Denied{Causes: []string{"no"}}, false},
		{nil, false},
	} {
		if diff := compare(&Expect{Denied: tc.want}, seen); (diff == nil) != tc.passes {
			t.Errorf("%+v: %q", tc.want, diff)
		}
	}
	if d := deniedOf(&abi.Denial{Message: "no"}); d.Code != 403 {
		t.Errorf("the code of a denial without one: %d", d.Code)
	}
}

// TestApplied_KeepsFieldsThatTheGuestLacks: only the difference to the base is applied.
func TestApplied_KeepsFieldsThatTheGuestLacks(t *testing.T) {
	encoded := func(v map[string]any) []byte {
		b, err := abi.AppendValue(nil, v)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	request := map[string]any{"spec": map[string]any{"a": int64(1), "new": "stays"}}
	got, err := applied(request, &abi.AdmissionResult{
		Object: encoded(map[string]any{"spec": map[string]any{"a": int64(1), "b": int64(2)}}), Base: encoded(map[string]any{"spec": map[string]any{"a": int64(1)}}),
	})
	if diff := objectDiff(request, got); err != nil || diff != "+ spec.b: 2\n" {
		t.Errorf("%v: %s", err, diff)
	}
}
