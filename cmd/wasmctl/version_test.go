// SPDX-License-Identifier: Apache-2.0

package main

import (
	"runtime/debug"
	"testing"
)

// TestReleaseOf_IsThatOfAPublishedModule: go install knows the checksum of the module, and a build in a checkout
// does not, although it may have a version that comes from the tags.
func TestReleaseOf_IsThatOfAPublishedModule(t *testing.T) {
	for want, info := range map[string]*debug.BuildInfo{
		"v1.2.3": {Main: debug.Module{Version: "v1.2.3", Sum: "h1:abc="}},
		"dev":    {Main: debug.Module{Version: "v1.2.4-0.20261126000000-0123456789ab+dirty"}},
	} {
		if got := releaseOf(info); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := releaseOf(nil); got != "dev" {
		t.Errorf("%q without information about the build", got)
	}
}
