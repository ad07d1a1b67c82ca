// SPDX-License-Identifier: Apache-2.0

package host

import (
	"os"
	"testing"

	"github.com/wasmctl/wasmctl/host/internal/linear"
)

// TestMain runs the tests. A read of the memory of an instance that was closed ends the
// process. With WASMCTL_TEST_ISOLATE, guests are behind a connection, as in a process of
// their own.
func TestMain(m *testing.M) {
	if os.Getenv("WASMCTL_TEST_ISOLATE") != "" {
		defaultIsolation = &testIsolation
	}
	linear.KeepFreed.Store(true)
	os.Exit(m.Run())
}
