// SPDX-License-Identifier: Apache-2.0

package flags

import (
	"testing"

	"github.com/wasmctl/wasmctl/api/v1alpha1"
)

// TestOptions_AGrantThatGrantsNothingIsNone: --grant-manifest=false has the same effect as no flag,
// except that --dev then does not grant the manifest.
func TestOptions_AGrantThatGrantsNothingIsNone(t *testing.T) {
	for _, tc := range []struct {
		grant *v1alpha1.Grant
		dev   bool
		want  bool // whether the manifest is granted
	}{
		{nil, false, false},
		{nil, true, true},
		{&v1alpha1.Grant{}, false, false},
		{&v1alpha1.Grant{}, true, false},
		{&v1alpha1.Grant{Manifest: true}, false, true},
	} {
		s := &v1alpha1.ControllerSpec{}
		s.Grant = tc.grant
		o := Options(s, &Files{}, nil, tc.dev)
		if got := o.Grant != nil; got != tc.want {
			t.Errorf("grant %+v, dev %v: granted %v", tc.grant, tc.dev, got)
		}
	}
}
