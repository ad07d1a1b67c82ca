// SPDX-License-Identifier: Apache-2.0

package printer

import (
	"strings"
	"testing"

	"github.com/wasmctl/wasmctl/abi"
	"github.com/wasmctl/wasmctl/host/load"
)

// TestInfo_ShowsWarningsOfTheManifest: warnings of the manifest are shown, although they are not problems.
func TestInfo_ShowsWarningsOfTheManifest(t *testing.T) {
	for finalizer, want := range map[string]bool{"cleanup": true, "example.com/cleanup": false} {
		out := string(Info(&load.Info{Manifest: &abi.Manifest{Finalizer: finalizer}}, nil, nil, false))
		if strings.Contains(out, "has no domain") != want || !strings.Contains(out, "Problems:   none") {
			t.Errorf("%s:\n%s", finalizer, out)
		}
	}
}
