// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"os"
	"testing"

	"github.com/wasmctl/wasmctl/host/internal/linear"
)

// TestMain runs the tests with memory that ends the process where somebody reads
// it after its instance was closed.
func TestMain(m *testing.M) {
	linear.KeepFreed.Store(true)
	os.Exit(m.Run())
}
