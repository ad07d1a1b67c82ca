// SPDX-License-Identifier: Apache-2.0

package watcher_test

import (
	"testing"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/wasmctl/wasmctl/devcluster/devclustertest"
)

// TestMain removes apimachinery's global limit of one reported error per millisecond: it stores the real time of the
// process's start, which in a bubble is 26 years ahead, and would sleep until then.
func TestMain(m *testing.M) {
	utilruntime.ErrorHandlers = utilruntime.ErrorHandlers[:1]
	devclustertest.Main(m)
}
