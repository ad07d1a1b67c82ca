// SPDX-License-Identifier: Apache-2.0

package run_test

import (
	"strings"
	"testing"

	"github.com/wasmctl/wasmctl/internal/enginetest"
)

// TestRun_DryRunChangesNothing: the example runs and prints its writes, and the cluster
// does not change.
func TestRun_DryRunChangesNothing(t *testing.T) {
	w := newWalled(t)
	c, out := w.runDry()
	w.generate("a")
	c.WantLine(`"msg":"reconciled"`, w.ns+"/a")
	enginetest.Until(t, "the diff is printed", func() bool {
		return strings.Contains(out(), "created   apply configmaps "+w.ns+"/a (dry run)")
	})
	if got := w.configMaps(); got != "" {
		t.Errorf("there are %s", got)
	}
}
